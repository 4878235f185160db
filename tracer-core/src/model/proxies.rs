//! Proxies: what programs submit to queues in memory, where a tool stands in front of the real ones.
//!
//! A proxy is laid out and used like a queue, so the same rules say what was submitted to it ([`Queues`]); but it is none,
//! and nothing of it counts among what was published: its facts are of other kinds, with numbers of their own.

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::queue::End;
use super::queues::{Queues, Sight};
use super::{doorbell, write_pointer};
use crate::event::{Doorbell, HsaQueue, Packets, Proxied, Reserve};
use crate::fact::{self, Fact};

/// Source of the [`Fact::Loss`] for requests of a proxy that could not be read.
pub(crate) const UNREAD: &str = "proxy-unread";

/// Every proxy that lives or lingers.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    queues: Queues,
}

impl Proxies {
    /// A program was given a proxy.
    pub(super) fn made(&mut self, event: &HsaQueue, proxy: Proxied, out: &mut impl FnMut(Fact)) {
        let create = CreateQueue {
            enter_ns: event.origin.time_ns,
            exit_ns: event.exit_ns,
            ring_base: proxy.ring_base,
            ring_bytes: proxy.ring_packets.saturating_mul(PACKET_LEN as u32),
            write_pointer: write_pointer(event.handle),
            read_pointer: 0,
            kind: QueueType::ComputeAql,
            gpu_id: 0,
            priority: 0,
            queue_id: None,
            doorbell_offset: None,
            engine: None,
        };
        if !self.queues.create(event.origin.pid, create, &mut as_requests(out)) {
            out(super::queue_limit(event.exit_ns));
        }
    }

    /// A program rang a proxy; the packets of that walk came before.
    pub(super) fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        if event.handle == 0 {
            return out(Fact::Loss(fact::Loss {
                time_ns: event.origin.time_ns,
                source: UNREAD.to_owned(),
                count: 1,
            }));
        }
        match self.queues.at_or_adopt(&doorbell::sight(event)) {
            Some(queue) => {
                queue.doorbell(event, &mut as_requests(out));
                queue.published.clear();
            }
            None => out(super::queue_limit(event.origin.time_ns)),
        }
    }

    /// Packets of its ring.
    pub(super) fn packets(&mut self, event: &Packets<'_>, sight: &Sight, out: &mut impl FnMut(Fact)) {
        if let Some(queue) = self.queues.at_or_adopt(sight) {
            queue.packets(event, &mut as_requests(out));
            // No GPU takes them from here: when they run, their publishing tells.
            queue.published.clear();
        }
    }

    /// A producer moves a write index, if it is a proxy's; whether it is.
    pub(super) fn reserve(&mut self, event: &Reserve, out: &mut impl FnMut(Fact)) -> bool {
        let pointer = write_pointer(event.handle);
        let is_proxy = self.queues.last(event.origin.pid, pointer).is_some();
        if is_proxy {
            self.queues.reserve(pointer, event, &mut as_requests(out));
        }
        is_proxy
    }

    pub(super) fn end_process(&mut self, pid: u32, end: End) {
        self.queues.end_process(pid, end);
    }

    /// Those that ended long enough ago become facts.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.queues.settle(now, &mut as_requests(out));
    }

    /// The trace ends: all become facts.
    pub(super) fn finish(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.queues.finish(now, &mut as_requests(out));
    }

    /// The numbers so far of those that live, or ended within the last second.
    pub(super) fn iter(&self) -> impl Iterator<Item = fact::Proxy> + '_ {
        self.queues.iter().map(|queue| proxy(&queue.numbers(false)))
    }
}

/// Facts of a queue as those of a proxy. That other packets were submitted and that it was rung, its numbers tell.
fn as_requests(out: &mut impl FnMut(Fact)) -> impl FnMut(Fact) + '_ {
    |fact| match fact {
        Fact::Dispatch(dispatch) => out(Fact::Request(request(dispatch))),
        Fact::Queue(queue) => out(Fact::Proxy(proxy(&queue))),
        Fact::Packet(_) | Fact::Doorbell(_) | Fact::Progress(_) => {}
        other => out(other),
    }
}

fn request(dispatch: fact::Dispatch) -> fact::Request {
    fact::Request {
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

fn proxy(queue: &fact::Queue) -> fact::Proxy {
    fact::Proxy {
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
