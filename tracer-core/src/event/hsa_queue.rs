//! Queues that programs make for themselves.

use super::Origin;

/// A call of `hsa_queue_create` that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsaQueue {
    /// Who and when it was entered.
    pub origin: Origin,
    /// Return from it.
    pub exit_ns: u64,
    /// The handle that it gave, as a rule the address of an `amd_queue_t`; 0 if it is not known.
    pub handle: u64,
    /// What lies there, if that is a proxy in memory: a tool's.
    pub proxy: Option<Proxied>,
}

/// A proxy that was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Address of its ring.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
}
