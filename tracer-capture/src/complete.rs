//! Copies of packets that their producers may be writing.
//!
//! A producer writes a packet's header last. A copy that has the header need not have the rest: the kernel copies by `rep movsb`,
//! and processors read the halves of a packet in either order. So packets are copied twice. A packet that was valid at the first
//! copy is complete at the second. tracer-ebpf/src/doorbell/complete.rs does the same.

use tracer_common::aql::{Packet, packet_type};

/// Sets the type of each packet to INVALID that was not yet valid in the earlier copy.
pub fn keep(packets: &mut [Packet], earlier: &[Packet]) {
    for (packet, earlier) in packets.iter_mut().zip(earlier) {
        if earlier.bytes[0] == packet_type::INVALID {
            packet.bytes[0] = packet_type::INVALID;
        }
    }
}
