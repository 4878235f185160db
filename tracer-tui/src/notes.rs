//! Why values of a view are unknown: a sentence each, below the rows.

use tracer_core::live::Picture;
use tracer_core::tables::CopyOp;

use crate::state::View;

/// Returns the sentences for the unknown values that the view shows.
pub fn of(view: View, picture: &Picture) -> Vec<&'static str> {
    let all: &[(bool, &str)] = match view {
        View::Queues => &queues(picture),
        View::Queue => &[(!picture.watched.kernel_rings, RING)],
        View::Kernels => &kernels(picture),
        View::Api => &api(picture),
        View::Copies => &copies(picture),
        View::Rings => &rings(picture),
        View::Ioctls => &[(
            picture.ioctls.iter().any(|ioctl| ioctl.ns.is_none()),
            "Times are ?: no call has returned.",
        )],
        View::Processes => &processes(picture),
    };
    all.iter()
        .filter_map(|&(applies, sentence)| applies.then_some(sentence))
        .collect()
}

/// Returns why a view has no rows although there may be something; `None` if it is watched and there is nothing.
pub fn unwatched(view: View, picture: &Picture) -> Option<&'static str> {
    let watched = &picture.watched;
    let (watches, reason) = match view {
        // A queue is seen at its creation, or at a doorbell.
        View::Queues | View::Queue => (
            watched.ioctls || watched.doorbells,
            "queues: ? (not watched: neither ioctls nor doorbells have probes; see tracer doctor)",
        ),
        View::Kernels => (
            watched.packets,
            "kernels: ? (not watched: no HSA runtime is loaded yet, or a probe is missing; see tracer doctor)",
        ),
        View::Api => (
            watched.api || watched.api_stats,
            "API calls: ? (not watched: --api all or --api stats watches them)",
        ),
        View::Copies => (
            watched.sdma_doorbells,
            "copies: ? (not watched: no HSA runtime is loaded yet, or a probe is missing; see tracer doctor)",
        ),
        View::Rings => (
            watched.kernel_rings,
            "rings: ? (not watched: the kernel has no events of the GPU's scheduler; see tracer doctor)",
        ),
        View::Ioctls => (
            watched.ioctls,
            "ioctls: ? (not watched: their probes are missing; see tracer doctor)",
        ),
        View::Processes => (true, ""),
    };
    (!watches).then_some(reason)
}

const RING: &str = "Path ring is ?: rings of the kernel driver are not watched.";

fn queues(picture: &Picture) -> [(bool, &'static str); 6] {
    let (watched, rows) = (&picture.watched, &picture.queues);
    let dispatches = picture.totals.dispatches.is_none();
    [
        (
            dispatches && !watched.packets,
            "Dispatches are ?: a runtime is not loaded yet, or lacks a probe (tracer doctor).",
        ),
        (
            dispatches && watched.packets,
            "Dispatches are ?: some packets have a form that tracer does not read.",
        ),
        (!watched.kernel_rings, RING),
        (
            rows.iter().any(|queue| queue.gpu_id.is_none()),
            "GPU is ?: the queue's creation was not seen.",
        ),
        (
            rows.iter().any(|queue| queue.latency_ns.is_none()) && !watched.reserves,
            "p50 and p99 are ?: only --detail full watches reserves.",
        ),
        (
            rows.iter().any(|queue| queue.pid.is_some() && queue.comm.is_none()),
            "Process is ?: tracer could not read its name.",
        ),
    ]
}

fn kernels(picture: &Picture) -> [(bool, &'static str); 2] {
    let rows = &picture.kernels;
    [
        (
            rows.iter().any(|kernel| kernel.name.is_none()),
            "An address is a kernel whose name is unknown: tracer did not see its code object.",
        ),
        (
            rows.iter().any(|kernel| kernel.comm.is_none()),
            "Process is ?: tracer could not read its name.",
        ),
    ]
}

fn api(picture: &Picture) -> [(bool, &'static str); 2] {
    let rows = &picture.api;
    [
        (
            rows.iter().any(|function| function.ns.is_none()),
            "Times are ?: no call has returned.",
        ),
        (
            rows.iter().any(|function| function.per_s.is_none()),
            "calls/s is ?: only the sum of these calls is known.",
        ),
    ]
}

fn copies(picture: &Picture) -> [(bool, &'static str); 3] {
    let rows = &picture.copies;
    let moves = |op: Option<CopyOp>| op != Some(CopyOp::None);
    [
        (
            rows.iter().any(|copy| copy.unknown > 0),
            "Bytes are ?: commands were not read, or the call around a kernel does not name the size.",
        ),
        (
            rows.iter().any(|copy| copy.direction.is_none() && moves(copy.op)),
            "Direction is ?: a kernel copies, or allocations do not show both ends.",
        ),
        (
            rows.iter().any(|copy| copy.op.is_none()),
            "Commands are ?: tracer did not read them.",
        ),
    ]
}

fn rings(picture: &Picture) -> [(bool, &'static str); 1] {
    let rows = &picture.rings;
    let open = rows
        .iter()
        .any(|ring| ring.waiting_ns.is_none() || ring.running_ns.is_none());
    [(open, "Times are ?: the events of their start or end were not seen.")]
}

fn processes(picture: &Picture) -> [(bool, &'static str); 2] {
    let rows = &picture.processes;
    [
        (
            rows.iter().any(|process| process.dispatches.is_none()),
            "Counts are ?: a runtime is not loaded yet, or lacks a probe (tracer doctor).",
        ),
        (
            rows.iter().any(|process| process.comm.is_none()),
            "Process is ?: tracer could not read its name.",
        ),
    ]
}
