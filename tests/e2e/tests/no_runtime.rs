//! A program without a runtime: it creates its queue by ioctls and stores to its doorbell, so no probe sees a submission.

use std::collections::BTreeMap;

use serde_json::json;
use tracer_core::tables::{Dispatch, Evidence, Path, QueueOrigin};
use tracer_e2e::{
    compare,
    running::{Program, Recorder},
    scenario::{Run, Scenario, folder},
    verdict::{rule, verdict},
};

/// Checks each dispatch against the packet that the device took at its index; some packets may be unread. Returns their number.
fn equal_the_truth(run: &Run) -> usize {
    let [truth] = &run.truth.queues[..] else {
        panic!("one queue")
    };
    let taken: BTreeMap<u64, _> = truth.packets.iter().map(|packet| (packet.index, packet)).collect();
    let rows: Vec<&Dispatch> = run.dispatches().collect();
    for row in &rows {
        let packet = taken[&row.index];
        assert_eq!(
            (row.path, row.evidence, row.tid),
            (Path::Unseen, Evidence::Body, 0),
            "{row:?}"
        );
        assert_eq!(
            (row.pid, row.kernel_object, row.kernarg),
            (truth.pid, packet.kernel_object, packet.kernarg_address)
        );
        assert_eq!((row.grid, row.workgroup), (packet.grid, packet.workgroup));
    }
    let queue = run.queues().next().expect("its queue");
    let all = truth.packets.len() as u64;
    assert_eq!(
        (queue.unseen, queue.published, queue.watched_to_end),
        (Some(all), all, Some(true))
    );
    assert_eq!(
        (queue.dispatches, queue.unread),
        (rows.len() as u64, all - rows.len() as u64)
    );
    rows.len()
}

/// The queue ends before the sampler knows it. The thread that exits copies its last packets.
#[test]
fn dispatches_without_a_runtime_are_counted_as_unseen_and_fail() {
    for (suite, asic, library) in [
        ("trixie", "gfx942", None),
        ("sid", "gfx1100", Some("libhsa-runtime64.so.1")),
    ] {
        for leave in [None, Some("exit"), Some("kill")] {
            let mut workload = vec!["--api", "kfd"];
            workload.extend(library.into_iter().flat_map(|library| ["--library", library]));
            workload.extend(leave.into_iter().flat_map(|leave| ["--leave", leave]));
            workload.extend(["direct-doorbell", "-n", "66"]);
            let run = Scenario::new(suite, asic, &workload).record_any();
            compare::no_losses(&run);
            assert_eq!(compare::taken(&run), 66, "{workload:?}");
            assert_eq!(run.report["unseen"]["total"], 66);
            assert_eq!(run.report["dispatches"]["by_path"]["unseen"], 66);
            // The device is known although no runtime was mapped.
            assert_eq!(run.report["devices"][0]["name"], asic);
            assert!(run.report["simulated"].is_string(), "{}", run.report["simulated"]);
            let (code, found) = verdict("doorbell-bypass", run.trace.dir());
            let coverage = rule(&found, "coverage");
            assert_eq!(
                (&coverage["outcome"], &coverage["counts"]["unseen"]),
                (&json!("fail"), &json!(66))
            );
            assert_eq!(code, Some(1), "{found:#}");
        }
    }
}

/// More packets than the ring has: the sampler reads slots before they are used again. What it cannot read is counted.
#[test]
fn a_ring_that_is_used_again_is_read_in_time_or_counted() {
    let workload = [
        "--api",
        "kfd",
        "steady",
        "--until",
        "/nonexistent",
        "-n",
        "4096",
        "--pause",
        "2000",
    ];
    let run = Scenario::new("trixie", "gfx942", &workload).record_any();
    compare::no_losses(&run);
    let read = equal_the_truth(&run);
    println!("{read} of 4096 packets were read from their slots");
    // At least the last lap of the ring, which the thread that exits copies.
    assert!(read >= 1024, "{read}");
    let whole = (read == 4096).then_some(4096);
    assert_eq!(run.report["dispatches"]["by_path"]["unseen"], json!(whole));
}

/// Its queue existed before, and nothing shows where the queue is: no number claims to include it.
#[test]
fn a_queue_that_a_program_without_a_runtime_had_is_listed() {
    let program = Program::steady("trixie", "gfx942", &["--api=kfd"]);
    program.goes_on(100);
    let traces = folder();
    let recorder = Recorder::attach(&traces.path().join("t"), &[program.pid()], &[]);
    program.goes_on(500);
    let recorded = recorder.interrupt();
    program.stop();
    assert_eq!(recorded.output.status.code(), Some(124), "{}", recorded.said());
    let run = program.read(recorded);
    let [queue] = &run.queues().collect::<Vec<_>>()[..] else {
        panic!("one queue")
    };
    let truth = &run.truth.queues[0];
    assert_eq!(
        (queue.origin, &*queue.kind),
        (QueueOrigin::Listed, "compute"),
        "{queue:?}"
    );
    assert_eq!(
        (queue.queue_id, queue.gpu_id),
        (Some(truth.queue_id), Some(truth.gpu_id))
    );
    assert_eq!((queue.ring_bytes, queue.unseen), (truth.ring_size, None));
    assert_eq!(
        (&run.report["dispatches"]["total"], &run.report["unseen"]["total"]),
        (&json!(null), &json!(null))
    );
    let (code, found) = verdict("doorbell-bypass", run.trace.dir());
    assert_eq!(
        (&rule(&found, "coverage")["outcome"], code),
        (&json!("inconclusive"), Some(3)),
        "{found:#}"
    );
}
