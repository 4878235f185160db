//! The matrix: every release of ROCr and of HIP, on each simulated GPU that it supports, with every workload. In each case,
//! dispatches, copies, doorbells and ioctls equal the simulator's truth field by field, every dispatch has the name of its kernel,
//! and what HIP submits is linked to the call that caused it.

use std::collections::BTreeSet;

use tracer_core::tables::{Dispatch, Fact};
use tracer_e2e::{
    compare::{self, through_hip},
    scenario::{NEWER_GPUS, RUNTIMES, Run, Scenario},
};

/// Checks that every dispatch has a name, except those of kernels that ROCr keeps in no list of code objects: its own copies and
/// fills. The names themselves were compared. Returns the number of dispatches without a name.
fn named(run: &Run) -> usize {
    let log = run.log.as_ref().expect("the dispatcher's log");
    // On the program's queues, if it submits itself; through HIP, everything that the device can name.
    let own: BTreeSet<u64> = log.submissions.iter().map(|submission| submission.queue).collect();
    let handle = |number| {
        run.queues()
            .find(|queue| queue.queue == number)
            .map(|queue| queue.handle)
    };
    let without: Vec<&Dispatch> = run.dispatches().filter(|d| d.kernel.is_none()).collect();
    for dispatch in &without {
        let name = run.truth.kernel_name(dispatch.pid, dispatch.kernel_object);
        assert_eq!(name, None, "{dispatch:?}");
        assert!(
            handle(dispatch.queue).is_some_and(|handle| !own.contains(&handle)),
            "{dispatch:?}"
        );
    }
    without.len()
}

/// Checks that nothing was passed to the driver's library, and that the trace says so.
fn nothing_by_thunk(run: &Run) {
    assert_eq!(run.report["dispatches"]["by_path"]["thunk"], 0);
}

fn on_hip(workload: &[&'static str], submits: bool) {
    hip_on(&RUNTIMES, workload, submits);
}

fn hip_on(runtimes: &[(&'static str, &'static str)], workload: &[&'static str], submits: bool) {
    let scenarios = runtimes.iter().map(|&(suite, asic)| Scenario {
        api: "all",
        ..Scenario::hip(suite, asic, workload)
    });
    compare::each(scenarios, |run, _| {
        let calls = through_hip(run);
        let launched = calls.iter().filter(|(made, _)| made.kernel.is_some()).count();
        println!("{launched} launches, {} dispatches without a name", named(run));
        assert_eq!(launched > 0, submits);
        nothing_by_thunk(run);
        assert!(!submits || run.dispatches().any(|d| d.kernel.as_deref() == Some("vector_add")));
    });
}

fn on_hsa(workload: &[&'static str]) {
    hsa_on(&RUNTIMES, workload);
}

fn hsa_on(runtimes: &[(&'static str, &'static str)], workload: &[&'static str]) {
    let scenarios = runtimes.iter().map(|&(suite, asic)| Scenario {
        api: "hsa",
        ..Scenario::new(suite, asic, workload)
    });
    compare::each(scenarios, |run, compared| {
        let rows = run.dispatches().filter(|d| d.kernel.is_some()).count();
        println!("{} dispatches without a name", named(run));
        assert!(rows > 0 && compared.named > 0, "{compared:?}");
        // From 7.2 on, its doorbell functions can pass the store to the driver's library. Earlier releases have no such call.
        let pid = run.did()["pid"].as_u64();
        let of_process = run.facts.iter().find_map(|fact| match fact {
            Fact::Process(process) if Some(process.pid.into()) == pid => Some(process.thunk),
            _ => None,
        });
        assert_eq!(of_process, Some(Some(false)));
        nothing_by_thunk(run);
    });
}

#[test]
fn hip_compute_only() {
    on_hip(&["compute-only", "-n", "50"], true);
}

#[test]
fn hip_copy_only() {
    on_hip(&["copy-only", "-n", "3"], false);
}

#[test]
fn hip_mixed() {
    on_hip(&["mixed"], true);
}

#[test]
fn hip_launches() {
    on_hip(&["launches", "-n", "2"], true);
}

#[test]
fn hip_graph() {
    on_hip(&["graph", "-n", "3", "--nodes", "8"], true);
}

/// Uses as many streams as have their own queues.
#[test]
fn hip_streams() {
    on_hip(&["streams", "--streams", "3", "-n", "20"], true);
}

#[test]
fn hsa_mixed() {
    on_hsa(&["mixed", "-n", "2", "--dispatches", "6"]);
}

#[test]
fn newer_gpus_through_hsa() {
    hsa_on(&NEWER_GPUS, &["mixed", "-n", "2", "--dispatches", "6"]);
}

/// HIP 6.4.3 does not know gfx950, although ROCr 6.4.3 does.
#[test]
fn newer_gpus_through_hip() {
    let known: Vec<_> = NEWER_GPUS
        .into_iter()
        .filter(|&pair| pair != ("sid", "gfx950"))
        .collect();
    hip_on(&known, &["mixed"], true);
}

/// 7.2.4 has a separate store for each of the two functions. In earlier releases they shared one.
#[test]
fn hsa_signal_store_relaxed() {
    on_hsa(&["batch", "--packets", "4", "-n", "40", "--doorbell-op", "relaxed"]);
}

#[test]
fn hsa_signal_store_screlease() {
    on_hsa(&["batch", "--packets", "4", "-n", "40", "--doorbell-op", "screlease"]);
}
