//! HIP and HSA calls: the trace has each call that the program made, complete, and submissions name the calls they were made in.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::{ApiCall, Copy, CopyOp, Dispatch, Fact};
use tracer_e2e::{
    compare::{self, calls, consistent_calls, through_hip},
    scenario::{Run, Scenario, each_release},
};

fn count(calls: &[&ApiCall], function: &str) -> u64 {
    calls.iter().filter(|call| call.function == function).count() as u64
}

/// Copies use SDMA, from the thread that requests them. The program rings for its dispatches itself, in no call.
#[test]
fn hsa_calls_equal_the_calls_of_the_program() {
    for (suite, gpu) in each_release(1) {
        let mut scenario = Scenario::new(suite, gpu, &["mixed", "-n", "2", "--dispatches", "6"]);
        scenario.api = "hsa";
        let run = scenario.record();
        consistent_calls(&run);
        let (calls, did) = (calls(&run), run.did());
        assert!(
            calls
                .iter()
                .all(|call| call.layer == "hsa" && call.failed == Some(false)),
            "{suite}"
        );
        let roots: Vec<&ApiCall> = calls.iter().filter(|call| call.parent.is_none()).copied().collect();
        assert_eq!(
            calls.len(),
            roots.len(),
            "{suite}: HSA calls none of the functions itself"
        );
        assert_eq!(
            (count(&calls, "hsa_init"), count(&calls, "hsa_shut_down")),
            (1, 1),
            "{suite}"
        );
        assert_eq!(
            calls.first().map(|call| call.function.as_ref()),
            Some("hsa_init"),
            "{suite}"
        );
        assert_eq!(
            calls.last().map(|call| call.function.as_ref()),
            Some("hsa_shut_down"),
            "{suite}"
        );
        // Queues by their handles, in both directions.
        let of = |function: &str| -> Vec<u64> {
            let of = calls.iter().filter(|call| call.function == function);
            of.map(|call| call.object.expect("a handle")).collect()
        };
        let queues: Vec<u64> = did["queues"]
            .as_array()
            .expect("queues")
            .iter()
            .map(|queue| hex(&queue["handle"]))
            .collect();
        assert_eq!(of("hsa_queue_create"), queues, "{suite}");
        let mut destroyed = of("hsa_queue_destroy");
        destroyed.sort_unstable();
        assert_eq!(destroyed, queues, "{suite}");
        // All allocated memory was freed, and every destroyed signal had been created.
        let (made, freed) = (of("hsa_amd_memory_pool_allocate"), of("hsa_amd_memory_pool_free"));
        assert!(
            !made.is_empty() && freed.iter().all(|pointer| made.contains(pointer)),
            "{suite}"
        );
        let (made, gone) = (of("hsa_signal_create"), of("hsa_signal_destroy"));
        assert!(
            !made.is_empty() && gone.iter().all(|signal| made.contains(signal)),
            "{suite}"
        );
        // Copies, with their bytes.
        let asked: Vec<&&ApiCall> = calls
            .iter()
            .filter(|call| call.function == "hsa_amd_memory_async_copy")
            .collect();
        assert_eq!(did["copies"], asked.len(), "{suite}");
        let bytes: u64 = asked.iter().map(|call| call.bytes.expect("the size of a copy")).sum();
        assert_eq!(did["copied_bytes"], bytes, "{suite}");
        for copy in run.copies() {
            let link = copy.api_call.unwrap_or_else(|| panic!("{suite}: {copy:?}"));
            assert!(asked.iter().any(|call| call.call == link), "{suite}: {copy:?}");
        }
        for call in &asked {
            let own = run.copies().filter(|copy| copy.api_call == Some(call.call));
            let bytes: u64 = own.filter_map(|copy| copy.bytes).sum();
            assert_eq!(Some(bytes), call.bytes, "{suite}: {call:?}");
        }
        let log = run.log.as_ref().expect("the dispatcher's log");
        let own = |queue: u32| {
            let own = |fact: &Fact| matches!(fact, Fact::Queue(q) if q.queue == queue && log.submissions.iter().any(|s| s.queue == q.handle));
            run.facts.iter().any(own)
        };
        for dispatch in run.dispatches() {
            assert_eq!(
                dispatch.api_call.is_none(),
                own(dispatch.queue),
                "{suite}: {dispatch:?}"
            );
        }
    }
}

/// Parses the address in a JSON string.
fn hex(value: &serde_json::Value) -> u64 {
    let digits = value.as_str().expect("a string");
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("an address")
}

fn hip(suite: &'static str, gpu: &'static str, api: &'static str, workload: &[&'static str]) -> Run {
    let mut scenario = Scenario::hip(suite, gpu, workload);
    scenario.api = api;
    // As most programs do. tracer watches reserves for the sake of links.
    scenario.detail = "dispatch";
    let run = scenario.record();
    let libraries = &run.trace.manifest().libraries;
    let named = |name: &str| {
        libraries
            .iter()
            .filter(|l| l.soname.as_deref().is_some_and(|s| s.starts_with(name)))
            .count()
    };
    assert_eq!(
        (named("libamdhip64"), named("libhsa-runtime64")),
        (1, 1),
        "{libraries:?}"
    );
    run
}

#[test]
fn hip_calls_equal_the_calls_of_the_program() {
    for (suite, gpu) in each_release(0) {
        let run = hip(suite, gpu, "hip", &["launches", "-n", "2"]);
        let pairs = through_hip(&run);
        assert!(
            pairs.iter().filter(|(made, _)| made.kernel.is_some()).count() >= 8,
            "{suite}"
        );
        assert!(calls(&run).iter().all(|call| call.layer == "hip"), "{suite}");
    }
}

/// HIP copies and fills by the HSA functions that it calls, or by its own kernels, whose bytes are those of HIP's call.
#[test]
fn hsa_calls_lie_within_hip_calls() {
    for (suite, gpu) in each_release(1) {
        let run = hip(suite, gpu, "all", &["mixed"]);
        let pairs = through_hip(&run);
        // Not all of them: HIP 5.2 reads a few bytes itself.
        let mut copied = pairs.iter().filter(|(made, _)| made.direction.is_some());
        assert!(copied.any(|(_, seen)| seen.copies > 0), "{suite}");
        let inside = calls(&run)
            .iter()
            .any(|call| call.layer == "hsa" && call.parent.is_some());
        assert!(inside, "{suite}");
        for (made, seen) in &pairs {
            let by_kernel = run.copies().filter(|c| c.is_kernel() && c.api_call == Some(seen.call));
            let found: Vec<_> = by_kernel.map(|copy| (copy.op, copy.bytes)).collect();
            let copied = vec![(Some(CopyOp::Copy), made.bytes)];
            let filled = vec![(Some(CopyOp::Fill), made.bytes)];
            // HIP chooses a way for copies from and to the host. Within the GPU, it copies by a kernel.
            let is_right = match made.direction.as_deref() {
                Some("device-to-device") => found == copied,
                Some(_) => found.is_empty() || found == copied,
                None if made.call.starts_with("hipMemset") => found == filled,
                None => found.is_empty(),
            };
            assert!(is_right, "{suite}: {made:?}: {found:?}");
        }
        let of_calls = |copy: &Copy| pairs.iter().any(|(_, seen)| copy.api_call == Some(seen.call));
        assert!(run.copies().filter(|c| c.is_kernel()).all(of_calls), "{suite}");
    }
}

/// Without copy engines, the runtime copies by its own kernels. These are dispatches on its own queues, in the call that requests
/// the copy and that gives its size. Each is a row of copies, too, with these bytes.
#[test]
fn copies_by_kernels_lie_in_the_call_that_asks_for_them() {
    for (suite, gpu) in each_release(0) {
        let mut scenario = Scenario::new(suite, gpu, &["copy-only", "-n", "4", "--bytes", "1000000"]);
        scenario.api = "hsa";
        scenario.env = vec![("HSA_ENABLE_SDMA", "0".into())];
        let run = scenario.record();
        compare::all(&run);
        consistent_calls(&run);
        let all = calls(&run);
        let asked = all.iter().filter(|call| call.function == "hsa_amd_memory_async_copy");
        let asked: BTreeMap<u64, &&ApiCall> = asked.map(|call| (call.call, call)).collect();
        assert_eq!(run.did()["copies"], asked.len(), "{suite}");
        for call in asked.values() {
            assert_eq!((call.dispatches, call.copies), (1, 1), "{suite}: {call:?}");
            let own: Vec<_> = run.copies().filter(|copy| copy.api_call == Some(call.call)).collect();
            assert!(
                own.iter().all(|copy| copy.is_kernel() && copy.bytes == call.bytes),
                "{suite}: {own:?}"
            );
        }
        let bytes: u64 = asked.values().filter_map(|call| call.bytes).sum();
        assert_eq!(run.did()["copied_bytes"], bytes, "{suite}");
        let in_copies = run
            .dispatches()
            .filter(|d| d.api_call.is_some_and(|call| asked.contains_key(&call)));
        for dispatch in in_copies {
            let queue = run.queues().find(|queue| queue.queue == dispatch.queue);
            assert_eq!(
                queue.and_then(|queue| queue.internal),
                Some(true),
                "{suite}: {dispatch:?}"
            );
        }
        assert_eq!(run.report["copies"]["total"], 0, "{suite}");
        let by_kernel = &run.report["copies"]["kernels"];
        assert_eq!(by_kernel["count"], asked.len(), "{suite}");
        assert_eq!(
            (&by_kernel["bytes"], &by_kernel["unknown"]),
            (&bytes.into(), &0.into()),
            "{suite}"
        );
    }
}

/// HIP then submits from its own thread, in no call of the program. The trace does not assign these submissions to a call.
#[test]
fn what_hip_submits_from_a_thread_of_its_own_is_in_no_call() {
    for (suite, gpu) in each_release(1) {
        let mut scenario = Scenario::hip(suite, gpu, &["launches", "-n", "2"]);
        scenario.api = "hip";
        scenario.env = vec![("AMD_DIRECT_DISPATCH", "0".into())];
        let run = scenario.record();
        compare::all(&run);
        consistent_calls(&run);
        let log = &run.log.as_ref().expect("the dispatcher's log").calls;
        let callers: BTreeSet<u32> = log.iter().map(|call| call.tid).collect();
        let others: Vec<&Dispatch> = run.dispatches().filter(|d| !callers.contains(&d.tid)).collect();
        println!(
            "{suite}: {} of {} dispatches by other threads",
            others.len(),
            run.dispatches().count()
        );
        assert!(
            others.iter().all(|d| (d.api_call, d.stream) == (None, None)),
            "{suite}: {others:?}"
        );
        let launched = log.iter().filter(|call| call.kernel.is_some()).count();
        assert!(others.len() >= launched, "{suite}");
    }
}

#[test]
fn a_graph_is_one_call_with_its_kernels() {
    for suite in ["sid", "experimental"] {
        let run = hip(suite, "gfx942", "hip", &["graph", "-n", "3", "--nodes", "4"]);
        let pairs = through_hip(&run);
        let launched: Vec<_> = pairs.iter().filter(|(made, _)| made.call == "hipGraphLaunch").collect();
        assert_eq!(launched.len(), 3, "{suite}");
        for (made, seen) in launched {
            assert!(
                seen.dispatches >= u64::from(made.kernels.expect("its kernels")),
                "{suite}: {seen:?}"
            );
        }
    }
}

#[test]
fn streams_of_threads() {
    for suite in ["trixie", "experimental"] {
        let run = hip(suite, "gfx1100", "hip", &["streams", "--streams", "3", "-n", "20"]);
        let pairs = through_hip(&run);
        let streams: BTreeSet<_> = pairs
            .iter()
            .filter(|(made, _)| made.kernel.is_some())
            .map(|(_, seen)| seen.stream)
            .collect();
        assert_eq!(streams.len(), 3, "{suite}");
    }
}

/// The program reserves packets and rings with the same functions in which tracer has other probes: each sees every call. The calls
/// are only counted, so a dispatch is in no call, as without them.
#[test]
fn steps_are_counted_beside_the_probes_of_submissions() {
    for (suite, gpu) in each_release(0) {
        let mut scenario = Scenario::new(suite, gpu, &["compute-only", "-n", "30", "--doorbell-op", "relaxed"]);
        scenario.api = "hsa";
        let run = scenario.record();
        compare::all(&run);
        consistent_calls(&run);
        let counted: BTreeMap<&str, u64> = run.api_stats().map(|row| (&*row.function, row.calls)).collect();
        let log = run.log.as_ref().expect("the dispatcher's log");
        let rung: BTreeSet<(u64, u64)> = log.submissions.iter().map(|s| (s.queue, s.doorbell)).collect();
        assert_eq!(
            counted["hsa_signal_store_relaxed"],
            rung.len() as u64,
            "{suite}: {counted:?}"
        );
        let reserved = run.report["reserves"]["total"].as_u64();
        println!("{suite}: {counted:?}, {reserved:?} reserves");
        assert!(
            counted["hsa_queue_add_write_index_screlease"] >= 1,
            "{suite}: {counted:?}"
        );
        assert!(counted["hsa_iterate_agents"] >= 1, "{suite}: {counted:?}");
        let rows = calls(&run);
        assert!(
            rows.iter().all(|call| !counted.contains_key(&*call.function)),
            "{suite}: a function with rows, and counted"
        );
    }
}

/// On request each of these calls has a row. A dispatch is in the store that rang for it.
#[test]
fn rows_of_steps_name_the_store_that_rang() {
    let mut scenario = Scenario::new(
        "experimental",
        "gfx942",
        &["compute-only", "-n", "30", "--doorbell-op", "relaxed"],
    );
    scenario.api = "hsa";
    scenario.api_rows = Some("step,query");
    let run = scenario.record();
    compare::all(&run);
    consistent_calls(&run);
    let all = calls(&run);
    let stores: BTreeMap<u64, &&ApiCall> = all
        .iter()
        .filter(|call| call.function == "hsa_signal_store_relaxed")
        .map(|call| (call.call, call))
        .collect();
    let log = run.log.as_ref().expect("the dispatcher's log");
    let own: Vec<&Dispatch> = run
        .dispatches()
        .filter(|d| {
            run.queues()
                .any(|q| q.queue == d.queue && log.submissions.iter().any(|s| s.queue == q.handle))
        })
        .collect();
    assert!(own.len() >= 30, "{}", own.len());
    for dispatch in own {
        let store = dispatch.api_call.and_then(|call| stores.get(&call));
        let store = store.unwrap_or_else(|| panic!("in no store: {dispatch:?}"));
        // The function returns nothing.
        assert_eq!((store.ret, store.failed), (None, Some(false)), "{store:?}");
    }
    // What is not asked for is counted.
    let counted: BTreeSet<&str> = run.api_stats().map(|row| &*row.function).collect();
    assert!(
        counted.contains("hsa_init") && !counted.contains("hsa_iterate_agents"),
        "{counted:?}"
    );
}
