//! What a program asked for, where a tool stands between it and its queues.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Evidence;

/// A proxy: a queue in memory that a tool put in front of a real one. The program submits there; what the tool makes of it is
/// published on a queue of the GPU's, in rows of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Number in the trace, from 0; not that of a queue.
    pub proxy: u32,
    /// Process.
    pub pid: u32,
    /// The handle that `hsa_queue_create` gave the program, which is the address of the proxy's `amd_queue_t`.
    pub handle: u64,
    /// Address of its ring.
    pub ring_base: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Return of `hsa_queue_create`.
    pub created_ns: u64,
    /// When its process ended, or another one was found at its address; `None` if it lived at the trace's end. Its own end is
    /// not watched.
    pub ended_ns: Option<u64>,
    /// Doorbells of the program.
    pub doorbells: u64,
    /// Packets that the program submitted.
    pub requested: u64,
    /// Kernel dispatches among them.
    pub dispatches: u64,
    /// Other packets among them.
    pub other_packets: u64,
    /// Those that could not be read.
    pub unread: u64,
    /// Index of the first, if there is one.
    pub first_index: Option<u64>,
    /// Index of the last.
    pub last_index: Option<u64>,
}

impl Proxy {
    /// What came after `before`: as if it had been found then.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let requested = self.requested.saturating_sub(before.requested);
        let first = before.last_index.map_or(self.first_index, |last| last.checked_add(1));
        Self {
            doorbells: self.doorbells.saturating_sub(before.doorbells),
            requested,
            dispatches: self.dispatches.saturating_sub(before.dispatches),
            other_packets: self.other_packets.saturating_sub(before.other_packets),
            unread: self.unread.saturating_sub(before.unread),
            first_index: first.filter(|_| requested > 0),
            last_index: self.last_index.filter(|_| requested > 0),
            ..self.clone()
        }
    }
}

/// A kernel dispatch that a program submitted to a proxy. Whether and how it was published, the tool decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Proxy, by its number in the trace ([`Proxy::proxy`]).
    pub proxy: u32,
    /// Packet index in it.
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Thread that rang for it.
    pub tid: u32,
    /// Time of that.
    pub time_ns: u64,
    /// What it rests on that it is a dispatch, as of [`super::Dispatch`].
    pub evidence: Evidence,
    /// Time at which that thread had reserved its index; `None` where that is not known.
    pub reserve_ns: Option<u64>,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel; `None` if it is not known.
    pub kernel: Option<Arc<str>>,
    /// Address of the arguments.
    pub kernarg: u64,
    /// Grid in work items.
    pub grid: [u32; 3],
    /// Workgroup in work items.
    pub workgroup: [u16; 3],
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
    /// Number of the innermost API call in which its thread rang for it; `None` as of [`super::Dispatch::api_call`].
    pub api_call: Option<u64>,
    /// Stream of the innermost call around that names one; `None` likewise.
    pub stream: Option<u64>,
}
