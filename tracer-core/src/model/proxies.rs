//! Proxies: submissions of programs to queues in memory, where a tool stands in front of the real queues.
//!
//! A proxy has the layout of a queue and is used like one, so the same rules determine what was submitted to it ([`Queues`]). But
//! it is not a queue, and its packets do not count as published: its facts are of other kinds, with numbers of their own.

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::queue::{End, Sight, doorbell};
use super::queues::Queues;
use super::write_pointer;
use crate::event::{Doorbell, HsaQueue, Packets, Proxied, Reserve};
use crate::losses::PROXY_UNREAD;
use crate::tables::{self, Fact};

/// Every proxy that exists or lingers.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    queues: Queues,
}

impl Proxies {
    /// Notes that a program received a proxy.
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

    /// Processes a doorbell of a proxy. The packets of that walk were processed before.
    pub(super) fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        if event.handle == 0 {
            return out(Fact::Loss(tables::Loss {
                time_ns: event.origin.time_ns,
                source: PROXY_UNREAD.to_owned(),
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

    /// Processes packets of a proxy's ring.
    pub(super) fn packets(&mut self, event: &Packets<'_>, sight: &Sight, out: &mut impl FnMut(Fact)) {
        if let Some(queue) = self.queues.at_or_adopt(sight) {
            queue.packets(event, &mut as_requests(out));
            // No GPU takes packets from a proxy. The times at which they ran come from their publication on a queue.
            queue.published.clear();
        }
    }

    /// Processes an advance of a write index, if it is a proxy's. Returns whether it is.
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

    /// Reports proxies as facts that ended long enough ago.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.queues.settle(now, &mut as_requests(out));
    }

    /// Ends the trace: reports all proxies as facts.
    pub(super) fn finish(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.queues.finish(now, &mut as_requests(out));
    }

    /// Returns the numbers so far of proxies that exist, or ended within the last second.
    pub(super) fn iter(&self) -> impl Iterator<Item = tables::Proxy> + '_ {
        self.queues.iter().map(|queue| proxy(&queue.totals(false)))
    }
}

/// Converts facts of a queue to facts of a proxy. Other packets and doorbells have no facts; the numbers of the proxy include them.
fn as_requests(out: &mut impl FnMut(Fact)) -> impl FnMut(Fact) + '_ {
    |fact| match fact {
        Fact::Dispatch(dispatch) => out(Fact::Request(request(dispatch))),
        Fact::Queue(queue) => out(Fact::Proxy(proxy(&queue))),
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

fn proxy(queue: &tables::Queue) -> tables::Proxy {
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
