//! Calls of HIP and HSA functions: those that the program made, each whole, and what is submitted in them names them.

use std::collections::{BTreeMap, BTreeSet};

use tracer_common::api::{Layer, find};
use tracer_core::fact::{ApiCall, Copy, CopyOp, Direction, Dispatch, Fact};
use tracer_e2e::{
    compare,
    dispatcher::Call,
    scenario::{Run, Scenario, each_release},
};

fn calls(run: &Run) -> Vec<&ApiCall> {
    let mut calls: Vec<_> = run
        .facts
        .iter()
        .filter_map(|fact| {
            if let Fact::ApiCall(call) = fact {
                Some(call)
            } else {
                None
            }
        })
        .collect();
    calls.sort_by_key(|call| call.call);
    calls
}

fn copies(run: &Run) -> impl Iterator<Item = &Copy> {
    run.facts
        .iter()
        .filter_map(|fact| if let Fact::Copy(c) = fact { Some(c) } else { None })
}

/// What holds of every recording: numbers without gaps in the order of entry, calls inside calls, links into calls of the
/// same thread that were open, and counts that add up.
fn assert_consistent(run: &Run) {
    let all = calls(run);
    let by_number: BTreeMap<u64, &ApiCall> = all.iter().map(|call| (call.call, *call)).collect();
    assert_eq!(by_number.len(), all.len(), "a number twice");
    assert_eq!(
        by_number.keys().copied().collect::<Vec<_>>(),
        (1..=all.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(run.report["losses"]["total"], 0, "{}", run.report["losses"]);
    for call in &all {
        let exit_ns = call.exit_ns.unwrap_or_else(|| panic!("never returned: {call:?}"));
        assert!(call.enter_ns < exit_ns, "{call:?}");
        if let Some(parent) = call.parent.map(|parent| by_number[&parent]) {
            assert_eq!((parent.pid, parent.tid), (call.pid, call.tid), "{call:?}");
            assert!(
                parent.call < call.call && parent.enter_ns < call.enter_ns,
                "{parent:?} {call:?}"
            );
            assert!(parent.exit_ns >= call.exit_ns, "{parent:?} {call:?}");
        }
    }
    // Of one thread, calls that are not one inside the other come one after the other.
    let mut last: BTreeMap<(u32, Option<u64>), u64> = BTreeMap::new();
    for call in &all {
        let before = last.insert((call.tid, call.parent), call.exit_ns.unwrap_or(0));
        assert!(before.is_none_or(|exit_ns| exit_ns <= call.enter_ns), "{call:?}");
    }
    let mut submitted: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let links = run.dispatches().map(|d| (d.api_call, d.tid, d.time_ns, (1, 0)));
    let links = links.chain(copies(run).map(|c| (c.api_call, c.tid, c.time_ns, (0, 1))));
    for (call, tid, time_ns, (dispatches, copies)) in links {
        let mut next = call;
        while let Some(number) = next {
            let call = by_number[&number];
            assert_eq!(call.tid, tid, "{call:?}");
            assert!(
                (call.enter_ns..=call.exit_ns.unwrap_or(0)).contains(&time_ns),
                "{time_ns} {call:?}"
            );
            let sum = submitted.entry(number).or_default();
            *sum = (sum.0 + dispatches, sum.1 + copies);
            next = call.parent;
        }
    }
    for call in &all {
        let seen = submitted.get(&call.call).copied().unwrap_or_default();
        assert_eq!((call.dispatches, call.copies), seen, "{call:?}");
    }
    // The report counts what the rows say.
    let reported = &run.report["api_calls"];
    assert_eq!(reported["total"], all.len());
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for call in &all {
        let (count, errors) = counts.entry(&call.function).or_default();
        *count += 1;
        *errors += u64::from(call.failed == Some(true));
    }
    assert_eq!(
        reported["by_function"].as_object().map(serde_json::Map::len),
        Some(counts.len())
    );
    for (function, (count, errors)) in counts {
        let said = &reported["by_function"][function];
        assert_eq!(
            (&said["count"], &said["errors"]),
            (&count.into(), &errors.into()),
            "{function}"
        );
    }
}

fn count(calls: &[&ApiCall], function: &str) -> u64 {
    calls.iter().filter(|call| call.function == function).count() as u64
}

/// Copies go by SDMA, from the thread that asks for them; the program rings for its dispatches itself, in no call.
#[test]
fn hsa_calls_are_those_that_the_program_makes() {
    for (suite, gpu) in each_release(1) {
        let mut scenario = Scenario::new(suite, gpu, &["mixed", "-n", "2", "--dispatches", "6"]);
        scenario.api = "hsa";
        let run = scenario.record();
        assert_consistent(&run);
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
        // What was made was freed, and every signal that was destroyed had been made.
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
        // Copies with their bytes.
        let asked: Vec<&&ApiCall> = calls
            .iter()
            .filter(|call| call.function == "hsa_amd_memory_async_copy")
            .collect();
        assert_eq!(did["copies"], asked.len(), "{suite}");
        let bytes: u64 = asked.iter().map(|call| call.bytes.expect("the size of a copy")).sum();
        assert_eq!(did["copied_bytes"], bytes, "{suite}");
        for copy in copies(&run) {
            let link = copy.api_call.unwrap_or_else(|| panic!("{suite}: {copy:?}"));
            assert!(asked.iter().any(|call| call.call == link), "{suite}: {copy:?}");
        }
        for call in &asked {
            let own = copies(&run).filter(|copy| copy.api_call == Some(call.call));
            let bytes: u64 = own.filter_map(|copy| copy.bytes).sum();
            assert!(call.dispatches > 0 || Some(bytes) == call.bytes, "{suite}: {call:?}");
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

/// The address in a JSON string.
fn hex(value: &serde_json::Value) -> u64 {
    address(value.as_str().expect("a string"))
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
}

/// Records a workload through HIP. The trace's HIP calls are those of the program's own log, thread by thread, one after
/// the other, and each dispatch and copy is linked into the call around it. Gives each call of the log with its row.
pub(crate) fn through_hip(run: &Run) -> Vec<(&Call, &ApiCall)> {
    assert_consistent(run);
    let all = calls(run);
    let by_number: BTreeMap<u64, &ApiCall> = all.iter().map(|call| (call.call, *call)).collect();
    let roots: Vec<&ApiCall> = all.iter().filter(|call| call.parent.is_none()).copied().collect();
    let log = &run.log.as_ref().expect("the dispatcher's log").calls;
    let threads: BTreeSet<u32> = log.iter().map(|call| call.tid).collect();
    let mut pairs = Vec::new();
    for tid in threads {
        let mut made: Vec<&Call> = log
            .iter()
            .filter(|call| call.tid == tid && find(Layer::Hip, &call.call).is_some())
            .collect();
        made.sort_by_key(|call| call.start_ns);
        let seen: Vec<&ApiCall> = roots
            .iter()
            .filter(|call| call.tid == tid && call.layer == "hip")
            .copied()
            .collect();
        let names = |made: &[&Call]| made.iter().map(|call| call.call.clone()).collect::<Vec<_>>();
        let rows: Vec<String> = seen.iter().map(|call| call.function.clone().into_owned()).collect();
        assert_eq!(names(&made), rows);
        for (made, seen) in made.into_iter().zip(seen) {
            assert_eq!(seen.ret, Some(i64::from(made.result)), "{made:?} {seen:?}");
            let exit_ns = seen.exit_ns.expect("it returned");
            assert!(
                made.start_ns <= seen.enter_ns && exit_ns <= made.end_ns,
                "{made:?} {seen:?}"
            );
            if let Some(stream) = &made.stream {
                assert_eq!(seen.stream, Some(address(stream)), "{made:?} {seen:?}");
            }
            // The log has the module that the function was looked up in.
            let made_object = made.object.as_ref().filter(|_| made.call != "hipModuleGetFunction");
            if let (Some(object), Some(seen_object)) = (made_object, seen.object) {
                assert_eq!(seen_object, address(object), "{made:?} {seen:?}");
            }
            if let (Some(bytes), Some(seen_bytes)) = (made.bytes, seen.bytes) {
                assert_eq!(seen_bytes, bytes, "{made:?} {seen:?}");
            }
            pairs.push((made, seen));
        }
    }
    // What was submitted in a call is linked into it, and nothing else is linked.
    let root_of = |number: u64| {
        let mut call = by_number[&number];
        while let Some(parent) = call.parent {
            call = by_number[&parent];
        }
        call.call
    };
    let around = |tid: u32, time_ns: u64| {
        let open = |call: &&&ApiCall| call.tid == tid && (call.enter_ns..=call.exit_ns.unwrap_or(0)).contains(&time_ns);
        roots.iter().find(open).map(|call| call.call)
    };
    for dispatch in run.dispatches() {
        let link = dispatch.api_call.map(root_of);
        assert_eq!(link, around(dispatch.tid, dispatch.time_ns), "{dispatch:?}");
    }
    for copy in copies(run) {
        assert_eq!(copy.api_call.map(root_of), around(copy.tid, copy.time_ns), "{copy:?}");
    }
    // Each launch of a kernel has its dispatch, on its stream; what a stream captures is launched with its graph.
    let captured = |made: &Call| {
        let mut before = pairs
            .iter()
            .map(|(other, _)| other)
            .filter(|other| other.tid == made.tid && other.start_ns < made.start_ns && other.call.ends_with("Capture"));
        before
            .next_back()
            .is_some_and(|other| other.call == "hipStreamBeginCapture")
    };
    let launches = pairs
        .iter()
        .filter(|(made, _)| made.kernel.is_some() && !captured(made));
    for (made, seen) in launches {
        let is_it = |d: &&Dispatch| {
            let workgroup = d.workgroup.map(u32::from);
            d.api_call.map(root_of) == Some(seen.call) && (Some(d.grid), Some(workgroup)) == (made.grid, made.workgroup)
        };
        let own: Vec<&Dispatch> = run.dispatches().filter(is_it).collect();
        assert_eq!(own.len(), 1, "{made:?} {seen:?}");
        assert_eq!(own[0].stream, made.stream.as_deref().map(address), "{made:?} {own:?}");
        assert_eq!(own[0].kernel.as_deref(), made.kernel.as_deref(), "{own:?}");
    }
    // What goes by SDMA in a copy is all that the call asks for, and moves as it says.
    for (made, seen) in &pairs {
        let (Some(asked), Some(direction)) = (made.bytes, made.direction.as_deref()) else {
            continue;
        };
        let own: Vec<&Copy> = copies(run)
            .filter(|copy| copy.api_call.map(root_of) == Some(seen.call))
            .collect();
        let moved: Vec<&&Copy> = own.iter().filter(|copy| copy.op != Some(CopyOp::None)).collect();
        let bytes: u64 = moved.iter().filter_map(|copy| copy.bytes).sum();
        assert!(moved.is_empty() || bytes == asked, "{made:?} {own:?}");
        let direction = match direction {
            "host-to-device" => Direction::H2d,
            "device-to-host" => Direction::D2h,
            _ => Direction::D2d,
        };
        assert!(
            moved.iter().all(|copy| copy.direction == Some(direction)),
            "{made:?} {own:?}"
        );
    }
    // Streams with their queues.
    let mut streams: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let submissions = run.dispatches().map(|d| (d.stream, Some(d.queue)));
    for (stream, queue) in submissions.chain(copies(run).map(|c| (c.stream, c.queue))) {
        if let (Some(stream), Some(queue)) = (stream, queue) {
            *streams.entry((stream, queue.into())).or_default() += 1;
        }
    }
    let reported = run.report["streams"].as_array().expect("streams");
    let of = |row: &serde_json::Value, field: &str| row[field].as_u64().expect("a number");
    let reported = reported
        .iter()
        .map(|row| ((of(row, "stream"), of(row, "queue")), of(row, "submissions")));
    assert_eq!(reported.collect::<BTreeMap<_, _>>(), streams);
    pairs
}

fn hip(suite: &'static str, gpu: &'static str, api: &'static str, workload: &[&'static str]) -> Run {
    let mut scenario = Scenario::hip(suite, gpu, workload);
    scenario.api = api;
    // As most do: it is links that reserves are watched for.
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
fn hip_calls_are_those_that_the_program_made() {
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

/// HIP's copies and fills by the HSA functions that it calls, or by kernels of its own.
#[test]
fn hsa_calls_lie_in_those_of_hip() {
    for (suite, gpu) in each_release(1) {
        let run = hip(suite, gpu, "all", &["mixed"]);
        let pairs = through_hip(&run);
        // Not all: HIP 5.2 reads a few bytes itself.
        let mut copied = pairs.iter().filter(|(made, _)| made.direction.is_some());
        assert!(copied.any(|(_, seen)| seen.copies > 0), "{suite}");
        let inside = calls(&run)
            .iter()
            .any(|call| call.layer == "hsa" && call.parent.is_some());
        assert!(inside, "{suite}");
    }
}

/// Without copy engines the runtime copies by kernels of its own: they are dispatches on queues of its own, in the call that
/// asks for the copy, which says how much it is. Nothing of it is among the copies.
#[test]
fn copies_by_kernels_lie_in_the_call_that_asks_for_them() {
    for (suite, gpu) in each_release(0) {
        let mut scenario = Scenario::new(suite, gpu, &["copy-only", "-n", "4", "--bytes", "1000000"]);
        scenario.api = "hsa";
        scenario.env = vec![("HSA_ENABLE_SDMA", "0".into())];
        let run = scenario.record();
        compare::all(&run);
        assert_consistent(&run);
        let all = calls(&run);
        let asked = all.iter().filter(|call| call.function == "hsa_amd_memory_async_copy");
        let asked: BTreeMap<u64, &&ApiCall> = asked.map(|call| (call.call, call)).collect();
        assert_eq!(run.did()["copies"], asked.len(), "{suite}");
        for call in asked.values() {
            assert!(call.dispatches > 0 && call.copies == 0, "{suite}: {call:?}");
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
    }
}

/// HIP then submits from a thread of its own, in no call of the program's: nothing is said of whose they are.
#[test]
fn what_hip_submits_from_a_thread_of_its_own_is_in_no_call() {
    for (suite, gpu) in each_release(1) {
        let mut scenario = Scenario::hip(suite, gpu, &["launches", "-n", "2"]);
        scenario.api = "hip";
        scenario.env = vec![("AMD_DIRECT_DISPATCH", "0".into())];
        let run = scenario.record();
        compare::all(&run);
        assert_consistent(&run);
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
