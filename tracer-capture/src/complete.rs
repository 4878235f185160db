//! Copies of packets that their producers may be writing.
//!
//! A producer writes a packet's header last. A copy that has the header need not have the rest: the kernel copies by `rep movsb`,
//! and processors read the halves of a packet in either order. So packets are copied twice, and the result has the headers of the
//! first copy. If such a header is valid, the second copy has the rest. The GPU may take the packet in between: it sets the header to
//! INVALID and leaves the rest. tracer-ebpf/src/doorbell/complete.rs does the same.

use tracer_common::aql::Packet;

/// Gives each packet the header of its earlier copy.
pub fn keep_headers(packets: &mut [Packet], earlier: &[Packet]) {
    for (packet, earlier) in packets.iter_mut().zip(earlier) {
        packet.bytes[..2].copy_from_slice(&earlier.bytes[..2]);
    }
}
