//! Queues that programs make for themselves: [`HsaQueue`].

use super::Header;

/// A call of `hsa_queue_create` that succeeded; `header.time_ns` is its entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HsaQueue {
    /// Header.
    pub header: Header,
    /// Return from the function, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// The handle that it gave, which is the address of the `amd_queue_t`, or of something that a tool put in its place;
    /// 0 if it could not be read, or the entry was not seen.
    pub queue: u64,
}
