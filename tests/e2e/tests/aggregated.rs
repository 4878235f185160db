//! Aggregated rows: what is left of them equals what the simulated device saw, index by index.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tracer_core::tables::{Evidence, Path, Queue};
use tracer_e2e::{
    scenario::{Run, Scenario, each_release, report_text},
    verdict::{rule, verdict},
};

/// Dispatches and doorbells, including those in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    dispatches: u64,
    dispatches_in_runs: u64,
    doorbells: u64,
    doorbells_in_runs: u64,
}

/// Compares a queue's rows and runs with the packets that the device took from it.
fn queue(run: &Run, queue: &Queue) -> Totals {
    let truth = run.truth_of(queue);
    let mut left: BTreeMap<u64, u64> = truth
        .packets
        .iter()
        .filter(|packet| packet.kind == "kernel_dispatch")
        .map(|packet| (packet.index, packet.kernel_object))
        .collect();
    let mut totals = Totals {
        dispatches: left.len() as u64,
        ..Totals::default()
    };
    for row in run.dispatches().filter(|row| row.queue == queue.queue) {
        assert_eq!(left.remove(&row.index), Some(row.kernel_object), "{row:?}");
    }
    for found in run.dispatch_runs().filter(|found| found.queue == queue.queue) {
        assert!(found.is_whole(), "{found:?}");
        assert_eq!((found.pid, found.path), (queue.pid, Path::Doorbell), "{found:?}");
        for index in found.first_index..=found.last_index {
            let object = left.remove(&index);
            assert!(
                object.is_some(),
                "{index} of {found:?} is there twice, or was no dispatch"
            );
            assert!(
                found.kernel_object.is_none() || found.kernel_object == object,
                "{found:?}"
            );
        }
        totals.dispatches_in_runs += found.count;
    }
    assert!(left.is_empty(), "{left:?} are missing");
    let mut published: BTreeSet<u64> = truth.packets.iter().map(|packet| packet.index).collect();
    let mut indexes = |first: u64, last: u64| {
        for index in first..=last {
            assert!(
                published.remove(&index),
                "{index} of {queue:?} was published twice, or never"
            );
        }
    };
    for row in run.doorbells().filter(|row| row.queue == Some(queue.queue)) {
        totals.doorbells += 1;
        if row.published > 0 {
            indexes(row.value + 1 - row.published, row.value);
        }
    }
    for found in run.doorbell_runs().filter(|found| found.queue == Some(queue.queue)) {
        assert!(found.is_whole() && !found.beyond, "{found:?}");
        totals.doorbells += found.count;
        totals.doorbells_in_runs += found.count;
        if let Some((first, last)) = found.first_index.zip(found.last_index) {
            indexes(first, last);
        }
    }
    assert!(published.is_empty(), "{published:?} are missing");
    assert_eq!(
        (queue.dispatches, queue.doorbells),
        (totals.dispatches, totals.doorbells)
    );
    totals
}

/// Compares all queues, and the report.
fn all(run: &Run) -> Totals {
    let mut sum = Totals::default();
    for found in run.queues().filter(|found| found.is_aql()) {
        let of = queue(run, found);
        sum.dispatches += of.dispatches;
        sum.dispatches_in_runs += of.dispatches_in_runs;
        sum.doorbells += of.doorbells;
        sum.doorbells_in_runs += of.doorbells_in_runs;
    }
    let report = &run.report;
    assert_eq!(report["dispatches"]["total"], sum.dispatches);
    assert_eq!(report["dispatches"]["by_path"]["doorbell"], sum.dispatches);
    assert_eq!(report["dispatches"]["aggregated"], sum.dispatches_in_runs);
    assert_eq!(report["doorbells"]["total"], sum.doorbells);
    assert_eq!(report["doorbells"]["aggregated"], sum.doorbells_in_runs);
    assert_eq!(report["losses"], json!({ "total": 0, "by_source": {} }));
    assert_eq!(report["complete"], true);
    let kernels = report["kernels"].as_array().expect("kernels");
    let by_kernel = kernels.iter().map(|kernel| kernel["count"].as_u64().expect("a number"));
    let others = report["other_kernels"].as_u64().expect("a number");
    assert_eq!(by_kernel.sum::<u64>() + others, sum.dispatches);
    let own = run.did()["dispatches"].as_u64().expect("a number");
    assert!(sum.dispatches >= own && own > 0, "{sum:?}");
    sum
}

/// With no memory for waiting rows, all rows are aggregated.
#[test]
fn runs_are_what_the_device_took() {
    for (suite, asic) in each_release(0) {
        for workload in [
            &["multi-queue", "--queues", "3", "-n", "200"] as &[&str],
            &["multi-thread", "--threads", "8", "-n", "2000"],
            &["barriers"],
        ] {
            let mut scenario = Scenario::new(suite, asic, workload);
            scenario.row_memory = Some("0");
            let run = scenario.record();
            let sum = all(&run);
            assert_eq!(
                (sum.dispatches_in_runs, sum.doorbells_in_runs),
                (sum.dispatches, sum.doorbells),
                "{suite} {asic} {workload:?}"
            );
            assert_eq!((run.dispatches().count(), run.doorbells().count()), (0, 0));
            // Evidence is never mixed within a run.
            let body = run.dispatch_runs().filter(|run| run.evidence == Evidence::Body);
            let body: u64 = body.map(|run| run.count).sum();
            assert_eq!(run.report["dispatches"]["by_evidence"]["body"], body);
        }
    }
}

/// A burst leaves its first rows, and runs.
#[test]
fn a_burst_that_the_disk_does_not_take() {
    let mut scenario = Scenario::new("trixie", "gfx1100", &["burst", "-n", "100000"]);
    scenario.row_memory = Some("1");
    let run = scenario.record();
    let sum = all(&run);
    assert!(
        sum.dispatches > sum.dispatches_in_runs && sum.dispatches_in_runs > 0,
        "{sum:?}"
    );
    let runs = run.dispatch_runs().count() as u64;
    assert!(runs < sum.dispatches_in_runs / 2, "{runs} of {sum:?}");
    // The recorder's final output equals the report of the trace.
    let said = String::from_utf8_lossy(&run.output.stderr).into_owned();
    let text = report_text(run.trace.dir());
    for n in [sum.dispatches_in_runs, sum.doorbells_in_runs] {
        let line = format!("           {n} of them: aggregated");
        assert!(said.contains(&line) && text.contains(&line), "{line}\n{said}\n{text}");
    }
}

/// The indexes of runs count as covered, and nothing is known about the time before their doorbells.
#[test]
fn verify_takes_their_indexes_and_leaves_the_rest_open() {
    let mut scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "50"]);
    scenario.row_memory = Some("0");
    let run = scenario.record();
    let sum = all(&run);
    let (code, found) = verdict("mes-bypass", run.trace.dir());
    assert_eq!(code, Some(3), "{found:#}");
    for (name, outcome) in [
        ("sound-capture", "pass"),
        ("dispatches", "pass"),
        ("coverage", "pass"),
        ("no-syscall", "inconclusive"),
    ] {
        assert_eq!(rule(&found, name)["outcome"], outcome, "{found:#}");
    }
    assert_eq!(rule(&found, "dispatches")["counts"]["dispatches"], sum.dispatches);
    assert_eq!(
        rule(&found, "no-syscall")["counts"]["dispatches_aggregated"],
        sum.dispatches
    );
    assert_eq!(rule(&found, "no-syscall")["missing"][0]["source"], "a row for each");
}
