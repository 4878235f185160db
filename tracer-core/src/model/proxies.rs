//! Proxies: submissions of programs to queues in memory, where a tool stands in front of the real queues.
//!
//! A proxy has the layout of a queue and is used like one, so the same rules determine what was submitted to it
//! ([`Queues`](super::queues::Queues)). But it is not a queue, and its packets do not count as published: its facts are of other
//! kinds, with numbers of their own.

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::write_pointer;
use crate::event::{HsaQueue, Proxied};
use crate::tables::{self, Fact};

/// Returns the creation of a proxy that a program received.
pub(super) fn creation(event: &HsaQueue, proxy: Proxied) -> CreateQueue {
    CreateQueue {
        enter_ns: event.origin.time_ns,
        exit_ns: event.exit_ns,
        ring_base: proxy.ring_base,
        ring_bytes: proxy.ring_packets.saturating_mul(PACKET_LEN as u32),
        ring_memory: None,
        write_pointer: write_pointer(event.handle),
        read_pointer: 0,
        kind: QueueType::ComputeAql,
        gpu_id: 0,
        priority: 0,
        queue_id: None,
        doorbell_offset: None,
        engine: None,
    }
}

/// Converts facts of a queue to facts of a proxy. Other packets and doorbells have no facts; the numbers of the proxy include them.
pub(super) fn as_requests(out: &mut impl FnMut(Fact)) -> impl FnMut(Fact) + '_ {
    |fact| match fact {
        Fact::Dispatch(dispatch) => out(Fact::Request(request(dispatch))),
        Fact::Queue(queue) => out(Fact::Proxy(row(&queue))),
        Fact::Packet(_) | Fact::Doorbell(_) | Fact::Progress(_) => {}
        other => out(other),
    }
}

fn request(dispatch: tables::Dispatch) -> tables::Request {
    tables::Request {
        proxy: dispatch.queue,
        index: dispatch.index,
        pid: dispatch.pid,
        tid: dispatch.tid,
        time_ns: dispatch.time_ns,
        evidence: dispatch.evidence,
        reserve_ns: dispatch.reserve_ns,
        kernel_object: dispatch.kernel_object,
        kernel: dispatch.kernel,
        kernarg: dispatch.kernarg,
        grid: dispatch.grid,
        workgroup: dispatch.workgroup,
        completion_signal: dispatch.completion_signal,
        api_call: dispatch.api_call,
        stream: dispatch.stream,
    }
}

/// Returns the row of a proxy.
pub(super) fn row(queue: &tables::Queue) -> tables::Proxy {
    tables::Proxy {
        proxy: queue.queue,
        pid: queue.pid,
        handle: queue.handle,
        ring_base: queue.ring_base,
        ring_bytes: queue.ring_bytes,
        created_ns: queue.created_ns,
        ended_ns: queue.destroyed_ns,
        doorbells: queue.doorbells,
        requested: queue.published,
        dispatches: queue.dispatches,
        other_packets: queue.other_packets,
        unread: queue.unread,
        first_index: queue.first_index,
        last_index: queue.last_index,
    }
}
