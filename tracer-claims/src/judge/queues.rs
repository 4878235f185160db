//! Claims about the creation of queues.

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Asked;
use super::{SYSCALL_EVENTS, launches, no_ring, scheduled};
use tracer_core::verify::Scheduler;

/// Judges claim C4.
pub(super) fn by_mes(asked: Asked, evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    if scheduled(Scheduler::Mes, run, checks) {
        by_ioctl(asked.queues, run, checks);
        add_queue(asked.queues, run, checks);
        no_ring("no job on a compute ring", evidence, run, checks);
    }
}

fn by_ioctl(asked: u64, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "creation and destruction go through the KFD";
    let (created, destroyed) = (run.ioctls("CREATE_QUEUE"), run.ioctls("DESTROY_QUEUE"));
    let (Some(create), Some(destroy)) = (created, destroyed) else {
        checks.lack(WHAT, "ioctls were not watched", SYSCALL_EVENTS);
        return;
    };
    let standing = Standing::holds_if(create >= asked && destroy >= asked, Standing::Contradicted);
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
    const REAL_DRIVER: (&str, &str) = (
        "the driver of a real GPU",
        "run it on a machine with a GPU of gfx11 or later",
    );
    const DRIVER_PROBES: (&str, &str) = (
        "driver probes",
        "load the driver (`sudo modprobe amdgpu`) and check its functions with `sudo tracer doctor`",
    );
    let added = run.driver_calls(|name| name == "add_queue_mes");
    let ring = run.driver_calls(|name| name.starts_with("mes_v") && name.ends_with("_add_hw_queue"));
    if run.context.simulated.is_some() {
        let sentence = "a simulated GPU has no driver that could call add_queue_mes or mes_*_add_hw_queue";
        checks.lack(WHAT, sentence, REAL_DRIVER);
        return;
    }
    let (Some(add), Some(write)) = (added, ring) else {
        checks.lack(WHAT, "functions of the driver were not watched", DRIVER_PROBES);
        return;
    };
    let sentence = format!("traced processes called add_queue_mes {add} times and mes_*_add_hw_queue {write} times");
    // A driver may have renamed or inlined these functions: if none was called, that is not evidence of another path.
    let standing = Standing::holds_if(add.max(write) >= asked, Standing::Inconclusive);
    checks
        .say(WHAT, standing, sentence)
        .count("add_queue_mes", added)
        .count("add_hw_queue", ring);
}

/// Judges claim C6.
pub(super) fn cooperative(asked: Asked, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "GWS costs one ioctl per queue";
    launches::doorbells(asked.dispatches, run, checks);
    let Some(called) = run.ioctls("ALLOC_QUEUE_GWS") else {
        checks.lack(WHAT, "ioctls were not watched", SYSCALL_EVENTS);
        return;
    };
    let with_gws = run.queues_with_gws();
    let all = run.summary.queues.iter();
    let used = all.filter(|queue| with_gws.contains(&queue.queue));
    let on_them: u64 = used.map(|queue| queue.dispatches).sum();
    let queues = with_gws.len() as u64;
    let standing = if called == asked.queues && queues == called && on_them >= asked.dispatches {
        Standing::Holds
    } else if called > queues && queues > 0 {
        Standing::Contradicted
    } else {
        Standing::Inconclusive
    };
    let sentence = format!(
        "calls of ALLOC_QUEUE_GWS that succeeded: {called}; queues that they were for: {queues}; dispatches to these: \
         {on_them}, of {} asked for",
        asked.dispatches
    );
    checks
        .say(WHAT, standing, sentence)
        .count("alloc_queue_gws", Some(called))
        .count("queues", Some(queues))
        .count("dispatches", Some(on_them));
    checks.note("the kernels are ordinary ones: no instruction of global wave sync is in them");
}
