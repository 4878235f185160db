//! Queues that programs create for themselves: [`HsaQueue`].

use super::Header;

/// Bits of [`Header::flags`] in an [`HsaQueue`].
pub mod hsa_queue_flags {
    /// The queue is a proxy: its doorbell is not a GPU's doorbell, but a signal in memory.
    pub const PROXY: u16 = 1;
}

/// A call of `hsa_queue_create` that succeeded. `header.time_ns` is the time of entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HsaQueue {
    /// Header; [`hsa_queue_flags`].
    pub header: Header,
    /// Return from the function, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// The returned handle, which is the address of the `amd_queue_t`, or of an object that a tool put in its place; 0 if it could
    /// not be read, or the entry was not seen.
    pub queue: u64,
    /// User address of the ring of a proxy; 0 if it could not be read.
    pub base: u64,
    /// Packets in the ring of a proxy; 0 if it could not be read.
    pub size: u32,
    /// Unused.
    pub pad: u32,
}
