//! Doorbells of AQL queues, and the packets that they publish.

use tracer_common::aql::Packet;
use tracer_common::record::Stamps;

use super::{InCall, Origin};

/// A store to an AQL doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Who and when; the time is that of the store's function entry, just before the store.
    pub origin: Origin,
    /// Address of the `amd_queue_t`, in the process; 0 if it could not be read.
    pub handle: u64,
    /// Value stored: index of the last packet published.
    pub value: u64,
    /// First index that the walk covered. Lower ones that no earlier walk captured are no longer in the ring.
    pub first: u64,
    /// One past the last index that the walk covered (and that this doorbell, or an earlier one, published).
    pub end: u64,
    /// Read index at that moment.
    pub read_index: u64,
    /// Write index at that moment.
    pub write_index: u64,
    /// Address of the ring.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// The process's memory could not be read: only `value` (and perhaps `handle`) are known.
    pub unreadable: bool,
    /// The value names an index that nobody has reserved: `end` is the write index, not `value + 1`.
    pub beyond: bool,
    /// No CREATE_QUEUE was seen for this address: what came before this doorbell is unknown.
    pub adopted: bool,
    /// It is no queue of a GPU's, but a tool's proxy in front of one.
    pub proxy: bool,
    /// One past the highest index that doorbells before this one published, those included whose events were lost; `None`
    /// if nobody knows.
    pub rung_end: Option<u64>,
}

/// Packets of a ring, as they lay there.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    /// Who published them (the thread whose doorbell led to the walk) and when.
    pub origin: Origin,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Index of `packets[0]`.
    pub first: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// Read index, read before the packets.
    pub read_index: u64,
    /// Write index, read after the packets, but at most the read index + `ring_packets`, since a producer that reserved
    /// beyond waits: index `i` still has its slot iff `write_index <= i + ring_packets`.
    pub write_index: u64,
    /// Value of the doorbell whose walk it is.
    pub value: u64,
    /// The API call in which that doorbell was rung; `None` if in none, or calls are not recorded.
    pub call: Option<InCall>,
    /// The slots.
    pub packets: &'a [Packet],
    /// Bit `i`: the queue was profiled and the completion signal of `packets[i]` had the value 1, as `stamps[i]` were read.
    pub ready: u64,
    /// What the completion signals held before the doorbell's store, where they are ready; empty if nobody looked.
    pub stamps: &'a [Stamps],
    /// What was so before the doorbell that led to the walk; `None` if nobody knows.
    pub before: Option<Before>,
    /// [`Doorbell::proxy`].
    pub proxy: bool,
}

impl Packets<'_> {
    /// What the completion signal of `packets[at]` held before that packet could begin, if it was the only one to complete it.
    #[must_use]
    pub fn stamps_before(&self, at: usize) -> Option<Stamps> {
        let is_ready = at < 64 && self.ready >> at & 1 == 1;
        self.stamps.get(at).copied().filter(|_| is_ready)
    }
}

/// Where a queue was at the entry of a doorbell, before its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// [`Doorbell::rung_end`].
    pub rung_end: u64,
    /// The index that is stored.
    pub value: u64,
    /// Read index.
    pub read_index: u64,
}
