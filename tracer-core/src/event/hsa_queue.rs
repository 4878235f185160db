//! Queues that programs create for themselves.

use super::Origin;

/// A call of `hsa_queue_create` that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsaQueue {
    /// Thread and time of entry.
    pub origin: Origin,
    /// Time of return.
    pub exit_ns: u64,
    /// The handle that the call returned, normally the address of an `amd_queue_t`; 0 if unknown.
    pub handle: u64,
    /// The queue at that address, if it is a tool's proxy in memory.
    pub proxy: Option<Proxied>,
}

/// A proxy that was just created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Address of its ring.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
}
