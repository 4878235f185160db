//! The current state: for a collector that continues a walk, for periodic samples, and for displays.

use super::{Model, queue, write_pointer};
use crate::tables;

/// State that a collector needs to continue a walk.
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

/// Addresses of the indexes of an AQL queue, in its process.
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
    /// Returns the queue at a handle (address of the `amd_queue_t`), if known.
    #[must_use]
    pub fn queue(&self, pid: u32, handle: u64) -> Option<QueueView> {
        self.trackers
            .submissions
            .queues
            .last(pid, write_pointer(handle))
            .map(|queue| QueueView {
                queue: queue.number,
                ring_base: queue.ring_base,
                ring_packets: queue.ring_packets,
                first_missing: queue.first_missing(),
                published_end: queue.published_end(),
            })
    }

    /// Returns the numbers so far of every queue that exists (or ended within the last second), in no particular order.
    pub fn queues(&self) -> impl Iterator<Item = tables::Queue> + '_ {
        let creators_known = self.trackers.submissions.queues.creators.are_known();
        self.trackers
            .submissions
            .queues
            .iter()
            .map(move |queue| queue.totals(creators_known))
    }

    /// Returns the same for every proxy.
    pub fn proxies(&self) -> impl Iterator<Item = tables::Proxy> + '_ {
        self.trackers.submissions.proxies.iter()
    }

    /// Returns the addresses of the indexes of every existing AQL queue, in no particular order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        self.trackers
            .submissions
            .queues
            .iter()
            .filter_map(queue::Queue::position)
    }

    /// Returns a number that changes whenever [`Self::positions`] does.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.trackers.submissions.queues.revision
    }

    /// Requests samples of the completion signals that are due: calls `ask` with process and handle.
    pub fn signals_due(&mut self, now_ns: u64, ask: impl FnMut(u32, u64)) {
        self.trackers.submissions.signals.due(now_ns, ask);
    }

    /// Returns the completion signals that published packets have not completed yet, if known.
    pub fn signals_waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.trackers.submissions.signals.waiting()
    }

    /// Returns every process that is alive (or exited within the last second), in no particular order.
    pub fn processes(&self) -> impl Iterator<Item = &tables::Process> {
        self.trackers.processes.iter()
    }

    /// Returns every code object that is loaded now, in no particular order.
    pub fn code_objects(&self) -> impl Iterator<Item = &tables::CodeObject> {
        self.annotations.code_objects()
    }

    /// Returns the counts of API calls so far, where calls are only counted.
    pub fn api_stats(&self) -> impl Iterator<Item = &tables::ApiStats> {
        self.trackers.counted.iter()
    }
}
