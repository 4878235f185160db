//! AQL doorbells and the packets that they publish: every workload, on every release of AMD's runtime and every class of GPU,
//! equals the simulator's truth field by field.

use tracer_core::tables::{Fact, Path, QueueOrigin};
use tracer_e2e::{
    compare::{self, Compared},
    scenario::{RUNTIMES, Run, Scenario, each_release},
};

/// Records the workload on these runtimes, compares everything, and passes each run to a check.
fn on(
    runtimes: impl IntoIterator<Item = (&'static str, &'static str)>,
    workload: &[&'static str],
    check: impl Fn(&Run, &Compared),
) {
    let scenarios = runtimes
        .into_iter()
        .map(|(suite, asic)| Scenario::new(suite, asic, workload));
    compare::each(scenarios, check);
}

/// Checks that there are at least as many dispatches as the dispatcher reports. ROCr's own blit kernels come in addition.
fn at_least_own(run: &Run, compared: &Compared) {
    let own = run.did()["dispatches"].as_u64().expect("a number");
    assert!(own > 0 && compared.dispatches as u64 >= own, "{own} of {compared:?}");
}

#[test]
fn compute_only() {
    on(RUNTIMES, &["compute-only", "-n", "100"], at_least_own);
}

/// The other function that stores to doorbells: HIP and every other test use `hsa_signal_store_screlease`. On 7.2.4 each function
/// has a store of its own; in earlier releases they shared one.
#[test]
fn relaxed_stores() {
    let workload = ["batch", "--packets", "4", "-n", "200", "--doorbell-op", "relaxed"];
    on(each_release(0), &workload, |run, compared| {
        at_least_own(run, compared);
        let rows = run.facts.iter().filter(|fact| matches!(fact, Fact::Doorbell(_)));
        assert!(rows.count() >= 50, "{compared:?}");
    });
}

/// As on kernels whose FUSE has no passthrough. The simulator then maps its device files as the dispatcher does.
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
    on(
        each_release(0),
        &["copy-only", "-n", "4", "--bytes", "1000000"],
        |_, compared| {
            assert!(compared.copies >= 4);
        },
    );
}

#[test]
fn mixed() {
    on(RUNTIMES, &["mixed"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.copies >= 2, "{compared:?}");
    });
}

#[test]
fn many_queues() {
    on(
        each_release(1),
        &["multi-queue", "--queues", "6", "-n", "50"],
        |run, compared| {
            at_least_own(run, compared);
            assert!(compared.queues >= 6);
        },
    );
}

/// What the doorbell program remembers of an object is in one of two entries, which other objects may have, too: of 1,000 queues, some
/// sixty pairs share theirs, and a few of them with a third one.
#[test]
fn a_thousand_queues() {
    on(
        each_release(0).take(1),
        &["multi-queue", "--queues", "1000", "-n", "4"],
        at_least_own,
    );
}

#[test]
fn many_threads_on_one_queue() {
    on(
        each_release(0),
        &["multi-thread", "--threads", "8", "-n", "2000"],
        |run, compared| {
            at_least_own(run, compared);
            assert_eq!(run.report["dispatches"]["by_evidence"]["body"], compared.by_body);
        },
    );
}

#[test]
fn barriers() {
    on(each_release(1), &["barriers"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.others > 0, "{compared:?}");
        // One barrier waits for a kernel of the other queue. The others wait for signals that the program sets.
        let queues = run.report["answers"]["queues"].as_array().expect("an array");
        let sum = |name: &str| queues.iter().filter_map(|queue| queue[name].as_u64()).sum::<u64>();
        let elsewhere = sum("waits_elsewhere")..=sum("waits_elsewhere_at_most");
        assert!(elsewhere.contains(&1), "{elsewhere:?}: {queues:?}");
        assert_eq!((sum("waits_own"), sum("repeated")), (0, 0), "{queues:?}");
    });
}

#[test]
fn batches_with_one_doorbell() {
    on(
        each_release(0),
        &["batch", "--packets", "100", "-n", "20"],
        |run, compared| {
            at_least_own(run, compared);
            let doorbells = run.report["doorbells"]["total"].as_u64().expect("a number");
            assert!(
                doorbells < compared.dispatches as u64,
                "{doorbells} doorbells, {compared:?}"
            );
        },
    );
}

#[test]
fn a_ring_that_wraps_around() {
    on(each_release(1), &["wrap"], |run, compared| {
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
    on(each_release(0), &["churn", "--queues", "30"], |run, compared| {
        at_least_own(run, compared);
        assert!(compared.queues >= 30);
        let gone = |fact: &&Fact| matches!(fact, Fact::Queue(q) if q.origin == QueueOrigin::Created && q.destroyed_ns.is_some());
        assert!(run.facts.iter().filter(gone).count() >= 30);
    });
}

#[test]
fn long_running_kernels() {
    on(each_release(1), &["long", "-n", "3", "--ms", "20"], at_least_own);
}

/// When a program itself stores to its doorbell, no function with a probe runs. These dispatches have no doorbell in the trace, and
/// those that the runtime rang have one.
#[test]
fn doorbells_that_the_program_rings_itself() {
    for ((suite, asic), reserve) in each_release(1).zip(["api", "raw"].into_iter().cycle()) {
        let workload = ["direct-doorbell", "-n", "10", "--seen", "3", "--reserve", reserve];
        let run = Scenario::new(suite, asic, &workload).record();
        assert_eq!(run.did()["results"], "ok");
        compare::no_losses(&run);
        compare::ioctls(&run);
        let log = run.log.as_ref().expect("the dispatcher's log");
        let handle = log.submissions[0].queue;
        let queue = run.facts.iter().find_map(|fact| match fact {
            Fact::Queue(queue) if queue.handle == handle => Some(queue),
            _ => None,
        });
        let queue = queue.expect("the program's queue");
        let own = run.dispatches().filter(|dispatch| dispatch.queue == queue.queue);
        let seen = own.filter(|dispatch| dispatch.path == Path::Doorbell).count();
        let made = log.submissions.len();
        println!("{suite} {asic} reserve {reserve}: {seen} of {made} dispatches have a doorbell");
        assert_eq!((seen, made, queue.doorbells), (3, 10, 3));
        let taken = run.truth.queues.iter().find(|truth| truth.wptr == queue.write_pointer);
        assert_eq!(taken.expect("it was created").packets.len(), made);
    }
}

#[test]
fn failing_launches() {
    on(each_release(0), &["fail"], |run, _| {
        assert_eq!(run.did()["failures_seen"], run.did()["failures_expected"]);
    });
}

/// At the highest rate that the program reaches under the probes, nothing is lost.
#[test]
fn a_burst_at_full_rate() {
    for ((suite, asic), detail) in each_release(0).zip(["dispatch", "full"].into_iter().cycle()) {
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
