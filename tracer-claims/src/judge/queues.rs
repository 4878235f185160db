//! Claims about the creation of queues.

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::{launches, no_ring, recorded, scheduled};
use tracer_core::verify::Scheduler;

/// Judges claim C4.
pub(super) fn by_mes(evidence: &Evidence, checks: &mut Checks) {
    let scenario = Scenario::Queues;
    let Some(run) = recorded(evidence, scenario, checks) else {
        return;
    };
    if !scheduled(Scheduler::Mes, run, checks) {
        return;
    }
    let asked = scenario.asked().queues;
    by_ioctl(asked, run, checks);
    add_queue(asked, run, checks);
    no_ring("no job on a compute ring", evidence, run, checks);
}

fn by_ioctl(asked: u64, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "creation and destruction go through the KFD";
    let (created, destroyed) = (run.ioctls("CREATE_QUEUE"), run.ioctls("DESTROY_QUEUE"));
    let (Some(create), Some(destroy)) = (created, destroyed) else {
        checks.lack(
            WHAT,
            "ioctls were not watched",
            "system call events",
            "run it on a kernel with CONFIG_FTRACE_SYSCALLS",
        );
        return;
    };
    let standing = if create >= asked && destroy >= asked {
        Standing::Holds
    } else {
        Standing::Contradicted
    };
    let sentence = format!(
        "for {asked} queues of the program and the runtime's own, CREATE_QUEUE succeeded {create} times and DESTROY_QUEUE \
         {destroy} times"
    );
    checks
        .say(WHAT, standing, sentence)
        .count("asked", Some(asked))
        .count("create_queue", created)
        .count("destroy_queue", destroyed);
}

fn add_queue(asked: u64, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "they go to the MES ring (ADD_QUEUE, REMOVE_QUEUE)";
    let added = run.driver_calls(|name| name == "add_queue_mes");
    let ring = run.driver_calls(|name| name.starts_with("mes_v") && name.ends_with("_add_hw_queue"));
    if run.context.simulated.is_some() {
        checks.lack(
            WHAT,
            "a simulated GPU has no driver that could call add_queue_mes or mes_*_add_hw_queue",
            "the driver of a real GPU",
            "run it on a machine with a GPU of gfx11 or later",
        );
        return;
    }
    let (Some(added), Some(ring)) = (added, ring) else {
        checks.lack(
            WHAT,
            "functions of the driver were not watched",
            "driver probes",
            "load the driver (`sudo modprobe amdgpu`) and check its functions with `sudo tracer doctor`",
        );
        return;
    };
    let calls = added.max(ring);
    let sentence = format!("traced processes called add_queue_mes {added} times and mes_*_add_hw_queue {ring} times");
    // A driver may have renamed or inlined these functions: if none was called, that is not evidence of another path.
    let standing = if calls >= asked {
        Standing::Holds
    } else {
        Standing::Inconclusive
    };
    checks
        .say(WHAT, standing, sentence)
        .count("add_queue_mes", Some(added))
        .count("add_hw_queue", Some(ring));
}

/// Judges claim C6.
pub(super) fn cooperative(evidence: &Evidence, checks: &mut Checks) {
    const WHAT: &str = "GWS costs one ioctl per queue";
    let scenario = Scenario::Cooperative;
    let Some(run) = recorded(evidence, scenario, checks) else {
        return;
    };
    launches::doorbells(scenario, run, checks);
    let asked = scenario.asked();
    let calls = run.ioctls("ALLOC_QUEUE_GWS");
    let Some(called) = calls else {
        checks.lack(
            WHAT,
            "ioctls were not watched",
            "system call events",
            "run it on a kernel with CONFIG_FTRACE_SYSCALLS",
        );
        return;
    };
    let queues = run.queues_with_gws();
    let on_them: u64 = run
        .summary
        .queues
        .iter()
        .filter(|queue| queues.contains(&queue.queue))
        .map(|queue| queue.dispatches)
        .sum();
    let standing = if called == asked.queues && queues.len() as u64 == called && on_them >= asked.dispatches {
        Standing::Holds
    } else if called > queues.len() as u64 && !queues.is_empty() {
        Standing::Contradicted
    } else {
        Standing::Inconclusive
    };
    let sentence = format!(
        "calls of ALLOC_QUEUE_GWS that succeeded: {called}; queues that they were for: {}; dispatches to these: {on_them}, of \
         {} asked for",
        queues.len(),
        asked.dispatches
    );
    checks
        .say(WHAT, standing, sentence)
        .count("alloc_queue_gws", calls)
        .count("queues", Some(queues.len() as u64))
        .count("dispatches", Some(on_them));
    checks.note("the kernels are ordinary ones: no instruction of global wave sync is in them");
}
