//! Submissions of a program to the proxy queues that a tool puts between the program and its queues.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Evidence;

/// A proxy: a queue in memory that a tool put in front of a real queue. The program submits to the proxy. The tool publishes what
/// it makes of these packets on a GPU queue; those packets have rows of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Number in the trace, from 0. It is not the number of a queue.
    pub proxy: u32,
    /// Process.
    pub pid: u32,
    /// The handle that `hsa_queue_create` gave the program, which is the address of the proxy's `amd_queue_t`.
    pub handle: u64,
    /// Address of its ring.
    pub ring_base: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Time of return of `hsa_queue_create`.
    pub created_ns: u64,
    /// Time at which its process exited, or at which another proxy was found at its address; `None` if it existed at the end of the
    /// trace. tracer does not watch the end of the proxy itself.
    pub ended_ns: Option<u64>,
    /// Doorbells of the program.
    pub doorbells: u64,
    /// Packets that the program submitted.
    pub requested: u64,
    /// Kernel dispatches among them.
    pub dispatches: u64,
    /// Other packets among them.
    pub other_packets: u64,
    /// Packets that could not be read.
    pub unread: u64,
    /// Index of the first packet, if any.
    pub first_index: Option<u64>,
    /// Index of the last packet, if any.
    pub last_index: Option<u64>,
}

impl Proxy {
    /// Returns the numbers since `before`, as if the proxy had been found at that time.
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

/// A kernel dispatch that a program submitted to a proxy. The tool decides whether and how it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Number of the proxy in the trace ([`Proxy::proxy`]).
    pub proxy: u32,
    /// Packet index in the proxy.
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Thread that rang for it.
    pub tid: u32,
    /// Time of that doorbell.
    pub time_ns: u64,
    /// Evidence that the packet is a dispatch, as in [`super::Dispatch`].
    pub evidence: Evidence,
    /// Time at which that thread had reserved the index; `None` if unknown.
    pub reserve_ns: Option<u64>,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel; `None` if unknown.
    pub kernel: Option<Arc<str>>,
    /// Address of the arguments.
    pub kernarg: u64,
    /// Grid size in work items.
    pub grid: [u32; 3],
    /// Workgroup size in work items.
    pub workgroup: [u16; 3],
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
    /// Number of the innermost API call in which the thread rang for it; `None` as in [`super::Dispatch::api_call`].
    pub api_call: Option<u64>,
    /// Stream of the innermost enclosing call that names a stream; `None` under the same conditions.
    pub stream: Option<u64>,
}
