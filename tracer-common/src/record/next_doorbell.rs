//! The record of a usual doorbell.

use super::{Call, Header, Stamps};
use crate::aql::Packet;

/// The usual [`Doorbell`](super::Doorbell). Its packets follow those of the queue's last doorbell. The program has checked that the
/// slots belong to these packets, and that the packets are valid.
///
/// So the walk covers the `count` packets up to `value`, and earlier doorbells published everything below. The record has room for
/// `N` packets, and for the stamps of `S` of them, which is `N` or 0. Bit `i` of the header's flags says that the stamps of
/// `packets[i]` count: see [`Packets::ready`](super::Packets::ready).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NextDoorbell<const N: usize, const S: usize> {
    /// Header. The time is that before the reads.
    pub header: Header,
    /// User address of the `amd_queue_t`.
    pub queue: u64,
    /// The value that the caller stores: index of the last packet.
    pub value: u64,
    /// Read index, read after the packets were copied.
    pub read_index: u64,
    /// Write index, read with it.
    pub write_index: u64,
    /// Packets in the ring.
    pub size: u32,
    /// The number of filled `packets`.
    pub count: u32,
    /// The API call that the thread is in.
    pub call: Call,
    /// The packets.
    pub packets: [Packet; N],
    /// The content of the completion signals; see [`Packets`](super::Packets).
    pub stamps: [Stamps; S],
}

/// The numbers of packets for which there are [`NextDoorbell`] records; with stamps, only for the first two.
pub const NEXT_DOORBELLS: [usize; 3] = [1, 4, 16];
