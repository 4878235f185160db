//! The contents of a slot of the ring, and the conclusions from them.
//!
//! # When a slot shows index `i`
//! The process and the GPU continue while a ring is read, so the bytes alone prove nothing. The walk reads two indexes around the
//! copy: the read index `r` before it, the write index `w` after it. Both only grow. For a ring of `n` packets:
//! - `w > i + n`: a producer has reserved the slot again and may have written it. The bytes may be packet `i + n`.
//! - `r + n <= i`: the GPU had not passed `i - n` yet, so no producer was allowed to write packet `i`. The bytes may be packet
//!   `i - n`, including the header. (A valid doorbell never covers such an index. A garbage value does.)
//! - else the bytes are packet `i`, or what is left of it, or a slot that waits for it. The GPU sets a header to INVALID before its
//!   read index passes the packet, so nothing valid is left of packet `i - n`.
//!
//! In the last case a header other than INVALID belongs to packet `i`. INVALID with `i < r` is a packet that the GPU has consumed:
//! its body is intact, and may suffice. INVALID with `i >= r` is a packet that its owner has not finished, or that the GPU consumed
//! between the two reads. The next walk will show which.
//!
//! A walk in eBPF may skip exactly those indexes that are final here. If it skips others, they are lost; if it does not skip these,
//! it reads them for nothing.

use tracer_common::aql::{Packet, packet_type};

use crate::event::Packets;
use crate::tables::Evidence;

/// What a slot shows of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Its packet.
    Packet(Evidence),
    /// Its packet was consumed, and the rest does not show its kind.
    Consumed,
    /// Nothing: the bytes belong to another packet, or there is no packet yet.
    Silent,
}

/// Returns what a slot shows of `index`.
pub(super) fn of(packet: &Packet, index: u64, walk: &Packets<'_>) -> Slot {
    let ring = u64::from(walk.ring_packets);
    let reused = walk.write_index > index.saturating_add(ring);
    let stale = walk.read_index.saturating_add(ring) <= index;
    match packet.kind() {
        _ if reused || stale => Slot::Silent,
        packet_type::INVALID if index >= walk.read_index => Slot::Silent,
        packet_type::INVALID if packet.body_form().is_some() || packet.body_is_pm4_ib() => Slot::Packet(Evidence::Body),
        packet_type::INVALID => Slot::Consumed,
        _ => Slot::Packet(Evidence::Header),
    }
}
