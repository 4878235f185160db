//! The current state: for periodic samples, and for displays.

use super::queue::Queue;
use super::{Model, proxies};
use crate::tables;

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
    /// Address of the ring and its number of packets (a power of two), if the packets that the GPU takes should be read: no probe
    /// has seen a doorbell of this queue.
    pub ring: Option<(u64, u32)>,
}

impl Model {
    /// Returns the numbers so far of every queue that exists (or ended within the last second), in no particular order.
    pub fn queues(&self) -> impl Iterator<Item = tables::Queue> + '_ {
        let queues = &self.trackers.submissions.queues;
        let creators_known = queues.creators.are_known();
        let listed = self.trackers.submissions.kfd_queues.listed().cloned();
        queues
            .iter()
            .map(move |queue| queue.totals(creators_known))
            .chain(listed)
    }

    /// Returns the same for every proxy.
    pub fn proxies(&self) -> impl Iterator<Item = tables::Proxy> + '_ {
        let proxies = self.trackers.submissions.proxies.iter();
        proxies.map(|queue| proxies::row(&queue.totals(false)))
    }

    /// Returns the addresses of the indexes of every existing AQL queue, in no particular order.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        self.trackers.submissions.queues.iter().filter_map(Queue::position)
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
        self.annotations.code_objects.iter()
    }

    /// Returns the counts of API calls so far, where calls are only counted.
    pub fn api_stats(&self) -> impl Iterator<Item = &tables::ApiStats> {
        self.trackers.counted.iter()
    }
}
