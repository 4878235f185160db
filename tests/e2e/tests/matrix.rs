//! The matrix: every release of ROCr and of HIP, on each simulated GPU that it knows, with every workload. Each time
//! dispatches, copies, doorbells and ioctls equal the simulator's truth field by field, every dispatch has the name of its
//! kernel, and what HIP submits is linked to the call that caused it.

use std::collections::BTreeSet;

use tracer_core::fact::{Dispatch, Fact};
use tracer_e2e::{
    compare::{self, through_hip},
    scenario::{RUNTIMES, Run, Scenario},
};

/// Every dispatch has a name but those of kernels that ROCr keeps in no list of code objects: its own copies and fills.
/// The names themselves were compared. Gives the number of those without.
fn named(run: &Run) -> usize {
    let log = run.log.as_ref().expect("the dispatcher's log");
    // On queues of the program, if it submits itself; through HIP everything that the device can name.
    let own: BTreeSet<u64> = log.submissions.iter().map(|submission| submission.queue).collect();
    let handle = |number| {
        run.queues()
            .find(|queue| queue.queue == number)
            .map(|queue| queue.handle)
    };
    let without: Vec<&Dispatch> = run.dispatches().filter(|d| d.kernel.is_none()).collect();
    for dispatch in &without {
        assert_eq!(run.truth.kernel_name(dispatch.kernel_object), None, "{dispatch:?}");
        assert!(
            handle(dispatch.queue).is_some_and(|handle| !own.contains(&handle)),
            "{dispatch:?}"
        );
    }
    without.len()
}

/// Nothing was handed to the driver's library, and that is known.
fn nothing_by_thunk(run: &Run) {
    assert_eq!(run.report["dispatches"]["by_path"]["thunk"], 0);
}

fn on_hip(workload: &[&'static str], submits: bool) {
    let scenarios = RUNTIMES.map(|(suite, asic)| Scenario {
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
    let scenarios = RUNTIMES.map(|(suite, asic)| Scenario {
        api: "hsa",
        ..Scenario::new(suite, asic, workload)
    });
    compare::each(scenarios, |run, compared| {
        let rows = run.dispatches().filter(|d| d.kernel.is_some()).count();
        println!("{} dispatches without a name", named(run));
        assert!(rows > 0 && compared.named > 0, "{compared:?}");
        // From 7.2 on its doorbell functions can hand over to the driver's library; those before have no such call.
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

/// Of as many streams as have queues of their own.
#[test]
fn hip_streams() {
    on_hip(&["streams", "--streams", "3", "-n", "20"], true);
}

#[test]
fn hsa_mixed() {
    on_hsa(&["mixed", "-n", "2", "--dispatches", "6"]);
}

/// 7.2.4 has a store of its own for each of the two functions; before they shared one.
#[test]
fn hsa_signal_store_relaxed() {
    on_hsa(&["batch", "--packets", "4", "-n", "40", "--doorbell-op", "relaxed"]);
}

#[test]
fn hsa_signal_store_screlease() {
    on_hsa(&["batch", "--packets", "4", "-n", "40", "--doorbell-op", "screlease"]);
}
