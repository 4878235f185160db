//! Logs of AMD's runtimes, imported, and what the device saw in the same run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tracer_common::queue::WRITE_DISPATCH_ID;
use tracer_core::tables::{Dispatch, Evidence, Fact, OtherPacket, Queue, QueueOrigin, Table};
use tracer_e2e::scenario::{Run, Scenario, each_release, folder, report};
use tracer_e2e::{compare, place, truth, verdict};
use tracer_store::Trace;

/// A trace made of a log.
struct Imported {
    queues: Vec<Queue>,
    dispatches: Vec<Dispatch>,
    packets: Vec<OtherPacket>,
    report: serde_json::Value,
    coverage: String,
}

/// Imports what the program of a recording wrote to standard error, with the lines of tracer itself among it. Returns the path of the
/// trace, too.
fn imported(run: &Run) -> (Output, PathBuf) {
    let (log, trace) = (run.dir.path().join("log.txt"), run.dir.path().join("log.trace"));
    fs::write(&log, &run.output.stderr).expect("a file");
    let mut tracer = Command::new(place::programs().join("tracer"));
    tracer.args(["import", "-o"]).args([&trace, &log]);
    (tracer.output().expect("tracer runs"), trace)
}

/// Does the same, and reads the trace.
fn import(run: &Run) -> Imported {
    let (output, trace) = imported(run);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (mut queues, mut dispatches, mut packets) = (Vec::new(), Vec::new(), Vec::new());
    let read = Trace::open(&trace).expect("a trace");
    assert!(read.manifest().complete && read.manifest().losses.is_empty(), "{said}");
    for fact in read.facts(&Table::ALL).expect("readable") {
        match fact.expect("no damaged part") {
            Fact::Queue(row) => queues.push(row),
            Fact::Dispatch(row) => dispatches.push(row),
            Fact::Packet(row) => packets.push(row),
            _ => {}
        }
    }
    let (_, judged) = verdict::verdict("doorbell-bypass", &trace);
    Imported {
        queues,
        dispatches,
        packets,
        report: report(&trace),
        coverage: verdict::rule(&judged, "coverage")["outcome"].to_string(),
    }
}

/// Returns the device's queue that a queue of a log is. HIP 5.2 names the `hsa_queue_t`, later releases the ring.
fn same<'a>(run: &'a Run, queue: &Queue) -> &'a truth::Queue {
    let is_it = |truth: &&truth::Queue| {
        let by_handle = queue.handle != 0 && truth.wptr == queue.handle + WRITE_DISPATCH_ID as u64;
        truth.pid == queue.pid && (by_handle || queue.ring_base != 0 && truth.ring_base == queue.ring_base)
    };
    let found = run.truth.queues.iter().find(is_it);
    found.unwrap_or_else(|| panic!("the device does not know {queue:?}"))
}

/// What a log and the device both know of a dispatch.
type Known = (u64, u64, [u32; 3], [u16; 3], u64);

fn of_log(row: &Dispatch) -> Known {
    (
        row.kernel_object,
        row.kernarg,
        row.grid,
        row.workgroup,
        row.completion_signal,
    )
}

fn of_device(packet: &truth::Packet) -> Known {
    (
        packet.kernel_object,
        packet.kernarg_address,
        packet.grid,
        packet.workgroup,
        packet.completion_signal,
    )
}

/// Checks that a log has the dispatches and barriers that the device took from HIP's queues, in the same order where it has indexes.
fn check(run: &Run, imported: &Imported, has_indexes: bool, has_names: bool) {
    let live: BTreeMap<(u64, u64), &Dispatch> = run
        .dispatches()
        .map(|row| {
            let queue = run.queues().find(|queue| queue.queue == row.queue);
            ((queue.expect("its queue").ring_base, row.index), row)
        })
        .collect();
    let mut seen = BTreeSet::new();
    for queue in &imported.queues {
        let truth = same(run, queue);
        seen.insert((truth.pid, truth.ring_base));
        let internal = run
            .queues()
            .find(|live| (live.pid, live.ring_base) == (truth.pid, truth.ring_base));
        let internal = internal.expect("the recording has it").internal;
        assert_eq!((queue.origin, queue.internal), (QueueOrigin::Logged, internal));
        let mut logged: Vec<&Dispatch> = imported
            .dispatches
            .iter()
            .filter(|row| row.queue == queue.queue)
            .collect();
        let mut taken: Vec<&truth::Packet> = truth.packets.iter().filter(|packet| packet.is_dispatch()).collect();
        assert_eq!(queue.dispatches, taken.len() as u64, "{queue:?}");
        logged.sort_by_key(|row| row.index);
        if has_indexes {
            let indexes = |row: &&Dispatch| row.index;
            assert_eq!(
                logged.iter().map(indexes).collect::<Vec<_>>(),
                taken.iter().map(|packet| packet.index).collect::<Vec<_>>()
            );
        } else {
            logged.sort_by_key(|row| of_log(row));
            taken.sort_by_key(|packet| of_device(packet));
        }
        let known: Vec<Known> = logged.iter().map(|row| of_log(row)).collect();
        assert_eq!(known, taken.iter().map(|packet| of_device(packet)).collect::<Vec<_>>());
        for (row, packet) in logged.iter().zip(&taken) {
            assert_eq!((row.evidence, row.tid), (Evidence::Log, 0));
            // The rows of the recording were compared with the device's bytes already.
            let live = live[&(truth.ring_base, packet.index)];
            assert_eq!(
                (
                    row.header,
                    row.dimensions,
                    row.private_segment,
                    row.group_segment,
                    row.pid
                ),
                (
                    live.header,
                    live.dimensions,
                    live.private_segment,
                    live.group_segment,
                    live.pid
                )
            );
            assert_eq!(row.kernel, live.kernel.clone().filter(|_| has_names));
        }
        if internal == Some(true) {
            // The HSA runtime writes no line about its commands to flush caches.
            continue;
        }
        let barriers = imported.packets.iter().filter(|row| row.queue == queue.queue).count();
        let others = truth.packets.iter().filter(|packet| !packet.is_dispatch()).count();
        assert_eq!(barriers, others, "{queue:?}");
    }
    // What a log lacks is on queues of the HSA runtime itself.
    let lacked = run.queues().filter(|queue| queue.is_aql() && queue.dispatches > 0);
    for queue in lacked.filter(|queue| !seen.contains(&(queue.pid, queue.ring_base))) {
        assert_eq!(queue.internal, Some(true), "{queue:?}");
    }
    assert!(!imported.dispatches.is_empty());
    // A log proves no total.
    assert!(imported.report["dispatches"]["total"].is_null() && imported.report["doorbells"]["total"].is_null());
    assert_eq!(imported.coverage, "\"inconclusive\"");
}

#[test]
fn a_log_has_the_dispatches_of_hip_on_every_release() {
    for (turn, workload) in [["mixed"].as_slice(), &["streams"], &["graph"]].into_iter().enumerate() {
        for (suite, asic) in each_release(turn) {
            for level in ["4", "5"] {
                // From HIP 7 on, level 4 has no packets.
                if (suite, level) == ("experimental", "4") {
                    continue;
                }
                let mut scenario = Scenario::hip(suite, asic, workload);
                scenario.env.push(("AMD_LOG_LEVEL", level.into()));
                let run = scenario.record();
                compare::device(&run);
                let imported = import(&run);
                println!(
                    "{suite} {asic} {workload:?} level {level}: {} dispatches",
                    imported.dispatches.len()
                );
                // HIP 6.4 writes no names when it launches a graph.
                let has_names = (suite, workload) != ("sid", &["graph"]);
                check(&run, &imported, ["sid", "experimental"].contains(&suite), has_names);
            }
        }
    }
}

#[test]
fn a_log_has_the_copies_of_the_hsa_runtime_on_its_own_queue() {
    for (suite, asic, level) in [("sid", "gfx942", "5"), ("experimental", "gfx1100", "7")] {
        let mut scenario = Scenario::hip(suite, asic, &["copy-only"]);
        scenario.env.push(("AMD_LOG_LEVEL", level.into()));
        // The runtime then copies by kernels, on a queue of its own.
        scenario.env.push(("HSA_ENABLE_SDMA", "0".into()));
        let run = scenario.record();
        compare::device(&run);
        let imported = import(&run);
        let own: u64 = imported
            .queues
            .iter()
            .filter(|queue| queue.internal == Some(true))
            .map(|queue| queue.dispatches)
            .sum();
        println!("{suite} {asic} level {level}: {own} dispatches of the HSA runtime");
        assert!(own > 0);
        check(&run, &imported, true, false);
    }
}

#[test]
fn a_log_without_packets_is_refused() {
    let mut scenario = Scenario::hip("experimental", "gfx1100", &["mixed"]);
    scenario.env.push(("AMD_LOG_LEVEL", "4".into()));
    let run = scenario.record();
    let (output, trace) = imported(&run);
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("AMD_LOG_LEVEL=5"));
    assert!(!trace.exists());
}

/// What bpftrace 0.17.0 printed by docs/recipes/doorbells.bt on Linux 6.18, while ROCr 6.1.2 ran the workload `mixed` on the simulated
/// GPU, and what the simulator logged.
#[test]
fn the_output_of_the_recipe_for_bpftrace_equals_the_truth() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/bpftrace-0.17");
    let dir = folder();
    fs::copy(recorded.join("truth.jsonl"), dir.path().join("truth.jsonl")).expect("a copy");
    let output = Command::new(place::programs().join("tracer"))
        .args(["import", "-o"])
        .args([&dir.path().join("t.trace"), &recorded.join("out.txt")])
        .output()
        .expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let run = Run::read(dir, output);
    let compared = compare::of_script(&run);
    assert_eq!(
        (compared.queues, compared.dispatches, compared.others, compared.ioctls),
        (4, 4, 1, run.truth.ioctls.len()),
        "{compared:?}"
    );
    assert_eq!(
        run.trace.manifest().capabilities,
        ["doorbells", "ioctls", "packets"],
        "{said}"
    );
    // What was not watched is unknown.
    assert_eq!(run.report["ring_jobs"]["total"], serde_json::Value::Null);
}
