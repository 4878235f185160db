//! What is known now: for a collector that goes on with a walk, for looks from time to time, and for those who show it.

use super::{Model, queue, write_pointer};
use crate::fact;

/// What a collector needs to go on with a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Number in the trace.
    pub queue: u32,
    /// Address of the ring.
    pub ring_base: u64,
    /// Packets in the ring; 0 if unknown.
    pub ring_packets: u32,
    /// The lowest index that is published but not read.
    pub first_missing: Option<u64>,
    /// One past the highest index published.
    pub published_end: u64,
}

/// Where the indexes of an AQL queue lie, in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// Process.
    pub pid: u32,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Address of the read index.
    pub read_pointer: u64,
    /// Address of the write index.
    pub write_pointer: u64,
}

impl Model {
    /// The queue at a handle (address of the `amd_queue_t`), if it is known.
    #[must_use]
    pub fn queue(&self, pid: u32, handle: u64) -> Option<QueueView> {
        self.queues.last(pid, write_pointer(handle)).map(|queue| QueueView {
            queue: queue.number,
            ring_base: queue.ring_base,
            ring_packets: queue.ring_packets,
            first_missing: queue.span.first_missing(),
            published_end: queue.span.end(),
        })
    }

    /// The numbers so far of every queue that lives (or ended within the last second), in no order.
    pub fn queues(&self) -> impl Iterator<Item = fact::Queue> + '_ {
        let makers_known = self.queues.makers.are_known();
        self.queues.iter().map(move |queue| queue.numbers(makers_known))
    }

    /// The same of every proxy.
    pub fn proxies(&self) -> impl Iterator<Item = fact::Proxy> + '_ {
        self.proxies.iter()
    }

    /// Where the indexes of every living AQL queue lie, in no order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        self.queues.iter().filter_map(queue::Queue::position)
    }

    /// Changes whenever [`Self::positions`] does.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.queues.revision
    }

    /// Completion signals that somebody should look at by now: process and handle.
    pub fn signals_due(&mut self, now_ns: u64, ask: impl FnMut(u32, u64)) {
        self.signals.due(now_ns, ask);
    }

    /// Completion signals that packets which were published have not completed yet, as far as anybody knows.
    pub fn signals_waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.signals.waiting()
    }

    /// Every process that lives (or ended within the last second), in no order.
    pub fn processes(&self) -> impl Iterator<Item = &fact::Process> {
        self.processes.iter()
    }

    /// Every code object that is loaded now, in no order.
    pub fn code_objects(&self) -> impl Iterator<Item = &fact::CodeObject> {
        self.code_objects.iter()
    }

    /// What was counted of API calls so far, where they are only counted.
    pub fn api_stats(&self) -> impl Iterator<Item = &fact::ApiStats> {
        self.counted.iter()
    }
}
