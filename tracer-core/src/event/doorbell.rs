//! Doorbells of AQL queues, and the packets that they publish.

use tracer_common::aql::Packet;
use tracer_common::record::Stamps;

use super::Origin;

/// The API call that a thread was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCall {
    /// Number of the innermost call.
    pub call: u64,
    /// Stream of the innermost call that names a stream; `None` if no call does.
    pub stream: Option<u64>,
}

/// A store to an AQL doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Thread and time. The time is that of the entry into the storing function, just before the store.
    pub origin: Origin,
    /// Address of the `amd_queue_t` in the process; 0 if it could not be read.
    pub handle: u64,
    /// Value stored: the index of the last packet published.
    pub value: u64,
    /// First index that the walk covered. Lower indexes that no earlier walk captured are no longer in the ring.
    pub first: u64,
    /// One past the last index that the walk covered (and that this doorbell or an earlier one published).
    pub end: u64,
    /// Read index at that time.
    pub read_index: u64,
    /// Write index at that time.
    pub write_index: u64,
    /// Address of the ring; 0 if an earlier doorbell of the queue had it.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// The process's memory could not be read. Only `value` (and perhaps `handle`) is known.
    pub unreadable: bool,
    /// The value names an index that no producer has reserved. In that case `end` is the write index, not `value + 1`.
    pub beyond: bool,
    /// The queue is not a GPU queue but a tool's proxy in front of one.
    pub proxy: bool,
    /// One past the highest index that earlier doorbells published, including doorbells whose events were lost; `None` if unknown.
    pub rung_end: Option<u64>,
}

impl Doorbell {
    /// Returns a doorbell of which only the value is known.
    #[must_use]
    pub fn unreadable(origin: Origin, value: u64) -> Self {
        Self {
            origin,
            handle: 0,
            value,
            first: 0,
            end: 0,
            read_index: 0,
            write_index: 0,
            ring_base: 0,
            ring_packets: 0,
            unreadable: true,
            beyond: false,
            proxy: false,
            rung_end: None,
        }
    }
}

/// Packets of a ring, as they were in memory.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    /// Thread that published them (its doorbell led to the walk), and the time.
    pub origin: Origin,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Index of `packets[0]`.
    pub first: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// Read index, read before the packets.
    pub read_index: u64,
    /// Write index, read after the packets, but at most the read index + `ring_packets`, because a producer that reserved beyond
    /// that waits. Index `i` still has its slot iff `write_index <= i + ring_packets`.
    pub write_index: u64,
    /// Value of the doorbell that led to the walk.
    pub value: u64,
    /// The API call in which that doorbell was rung; `None` if outside any call, or if calls are not recorded.
    pub call: Option<InCall>,
    /// The slots.
    pub packets: &'a [Packet],
    /// Bit `i`: the queue was profiled and the completion signal of `packets[i]` had the value 1 when `stamps[i]` was read.
    pub ready: u64,
    /// Contents of the completion signals before the doorbell's store, for signals that are ready; empty if they were not read.
    pub stamps: &'a [Stamps],
    /// State of the queue before the doorbell that led to the walk; `None` if unknown.
    pub before: Option<Before>,
    /// See [`Doorbell::proxy`].
    pub proxy: bool,
}

impl<'a> Packets<'a> {
    /// Returns packets with only what their slots and the indexes around them show, as for [`super::Event::Taken`]. `indexes` are the
    /// read index before the read, and the write index after it.
    #[must_use]
    pub fn of_slots(
        origin: Origin,
        handle: u64,
        ring_packets: u32,
        indexes: (u64, u64),
        first: u64,
        packets: &'a [Packet],
    ) -> Self {
        let (read_index, write_index) = indexes;
        Self {
            origin,
            handle,
            first,
            ring_packets,
            read_index,
            write_index,
            value: 0,
            call: None,
            packets,
            ready: 0,
            stamps: &[],
            before: None,
            proxy: false,
        }
    }

    /// Returns the contents of the completion signal of `packets[at]` before that packet could begin, if no other packet was to
    /// complete the signal.
    #[must_use]
    pub fn stamps_before(&self, at: usize) -> Option<Stamps> {
        let is_ready = at < 64 && self.ready >> at & 1 == 1;
        self.stamps.get(at).copied().filter(|_| is_ready)
    }
}

/// State of a queue at the entry of a doorbell function, before the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// See [`Doorbell::rung_end`].
    pub rung_end: u64,
    /// The index to be stored.
    pub value: u64,
    /// Read index.
    pub read_index: u64,
}
