//! AQL doorbells and the packets that they publish: every workload, two versions of AMD's runtime, two GPU classes,
//! equal to the simulator's truth field by field.

use tracer_core::fact::{Fact, QueueOrigin};
use tracer_e2e::{
    compare::{self, Compared},
    scenario::{Run, Scenario},
};

/// ROCr 6.1.2 and 6.4.3.
const SUITES: [&str; 2] = ["trixie", "sid"];
/// A GPU whose queues the HWS schedules, and one of the MES.
const ASICS: [&str; 2] = ["gfx942", "gfx1100"];

/// Records the workload everywhere, compares everything, and gives each run for more.
fn everywhere(workload: &[&'static str], check: impl Fn(&Run, &Compared)) {
    for suite in SUITES {
        for asic in ASICS {
            let run = Scenario::new(suite, asic, workload).record();
            let compared = compare::all(&run);
            assert_eq!(run.did()["results"], "ok");
            println!("{suite} {asic} {}: {compared:?}", workload.join(" "));
            check(&run, &compared);
        }
    }
}

/// As many dispatches as the dispatcher says that it made; ROCr's own blit kernels come on top.
fn at_least_own(run: &Run, compared: &Compared) {
    let own = run.did()["dispatches"].as_u64().expect("a number");
    assert!(own > 0 && compared.dispatches as u64 >= own, "{own} of {compared:?}");
}

#[test]
fn compute_only() {
    everywhere(&["compute-only", "-n", "100"], at_least_own);
}

/// As on kernels whose FUSE has no passthrough: then the simulator maps its device files like the dispatcher does.
#[test]
fn memory_that_is_shared_by_the_kernels_cache() {
    for workload in [&["mixed"] as &[&str], &["multi-thread", "-n", "2000", "--threads", "4"]] {
        let mut scenario = Scenario::new("trixie", "gfx1100", workload);
        scenario.sim = vec!["--no-passthrough"];
        let run = scenario.record();
        at_least_own(&run, &compare::all(&run));
        assert_eq!(run.did()["results"], "ok");
    }
}

#[test]
fn copy_only() {
    everywhere(&["copy-only", "-n", "4", "--bytes", "1000000"], |_, compared| {
        assert!(compared.copies >= 4);
    });
}

#[test]
fn mixed() {
    everywhere(&["mixed"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.copies >= 2, "{compared:?}");
    });
}

#[test]
fn many_queues() {
    everywhere(&["multi-queue", "--queues", "6", "-n", "50"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.queues >= 6);
    });
}

#[test]
fn many_threads_on_one_queue() {
    everywhere(&["multi-thread", "--threads", "8", "-n", "2000"], |run, compared| {
        at_least_own(run, compared);
        assert_eq!(run.report["dispatches"]["by_evidence"]["body"], compared.by_body);
    });
}

#[test]
fn barriers() {
    everywhere(&["barriers"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.others > 0, "{compared:?}");
    });
}

#[test]
fn batches_with_one_doorbell() {
    everywhere(&["batch", "--packets", "100", "-n", "20"], |run, compared| {
        at_least_own(run, compared);
        let doorbells = run.report["doorbells"]["total"].as_u64().expect("a number");
        assert!(
            doorbells < compared.dispatches as u64,
            "{doorbells} doorbells, {compared:?}"
        );
    });
}

#[test]
fn a_ring_that_wraps_around() {
    everywhere(&["wrap"], |run, compared| {
        at_least_own(run, compared);
        let laps = |fact: &Fact| match fact {
            Fact::Queue(q) if q.kind == "compute-aql" => q.published / (q.ring_bytes / 64).max(1),
            _ => 0,
        };
        assert!(run.facts.iter().map(laps).max() > Some(1), "no ring went around");
    });
}

#[test]
fn queues_that_come_and_go() {
    everywhere(&["churn", "--queues", "30"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.queues >= 30);
        let gone = |fact: &&Fact| matches!(fact, Fact::Queue(q) if q.origin == QueueOrigin::Created && q.destroyed_ns.is_some());
        assert!(run.facts.iter().filter(gone).count() >= 30);
    });
}

#[test]
fn long_running_kernels() {
    everywhere(&["long", "-n", "3", "--ms", "20"], at_least_own);
}

#[test]
fn failing_launches() {
    everywhere(&["fail"], |run, _| {
        assert_eq!(run.did()["failures_seen"], run.did()["failures_expected"]);
    });
}

/// At the greatest rate that the program reaches under the probes: nothing is lost.
#[test]
fn a_burst_at_full_rate() {
    for (detail, asic) in ["dispatch", "full"].into_iter().zip(ASICS) {
        for suite in SUITES {
            let mut scenario = Scenario::new(suite, asic, &["burst", "-n", "100000"]);
            scenario.detail = detail;
            let run = scenario.record();
            let compared = compare::all(&run);
            assert!(compared.dispatches >= 100_000);
            let did = run.did();
            println!(
                "{suite} {asic} --detail {detail}: 100000 dispatches submitted in {} ns, {}/s to completion; {compared:?}",
                did["submitted_ns"], did["dispatches_per_second"]
            );
        }
    }
}
