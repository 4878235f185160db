//! Queues that programs make for themselves: [`HsaQueue`].

use super::Header;

/// Bits of [`Header::flags`] in an [`HsaQueue`].
pub mod hsa_queue_flags {
    /// It is a proxy: its doorbell is no doorbell of a GPU's, but a signal in memory.
    pub const PROXY: u16 = 1;
}

/// A call of `hsa_queue_create` that succeeded; `header.time_ns` is its entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HsaQueue {
    /// Header; [`hsa_queue_flags`].
    pub header: Header,
    /// Return from the function, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// The handle that it gave, which is the address of the `amd_queue_t`, or of something that a tool put in its place;
    /// 0 if it could not be read, or the entry was not seen.
    pub queue: u64,
    /// Of a proxy: user address of its ring; 0 if it could not be read.
    pub base: u64,
    /// Of a proxy: packets in the ring; 0 likewise.
    pub size: u32,
    /// Unused.
    pub pad: u32,
}
