//! Submissions of a program to the proxy queues that a tool puts between the program and its queues.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Evidence, table};

table! {
    /// Proxies: queues in memory that a tool such as a profiler puts in front of queues and gives to the program instead. No GPU
    /// reads them; the tool publishes its packets on `queues`.
    #[derive(Serialize, Deserialize)]
    pub struct Proxy: "proxies" by created_ns, Snapshots {
        /// Number of the proxy in the trace, from 0; not that of a queue.
        pub proxy: u32,
        /// Process.
        pub pid: u32,
        /// The handle that `hsa_queue_create` returned to the program: the proxy's `amd_queue_t`.
        pub handle: u64 => "address",
        /// Its ring.
        pub ring_base: u64 => "address",
        /// Size of the ring.
        pub ring_bytes: u64 => "bytes",
        /// Return of `hsa_queue_create`.
        pub created_ns: u64 => "ns",
        /// When its process exited, or another proxy took its address; null if neither happened. tracer does not watch the end of a
        /// proxy itself.
        pub ended_ns: Option<u64> => "ns",
        /// Doorbells of the program.
        pub doorbells: u64 => "doorbells",
        /// Packets that the program submitted.
        pub requested: u64 => "packets",
        /// Kernel dispatches among these.
        pub dispatches: u64 => "packets",
        /// Other packets among these.
        pub other_packets: u64 => "packets",
        /// Packets that tracer could not read.
        pub unread: u64 => "packets",
        /// Index of the first one; null if there is none.
        pub first_index: Option<u64> => "index",
        /// Index of the last one; null if there is none.
        pub last_index: Option<u64> => "index",
    }
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

table! {
    /// Kernel dispatches that programs submitted to proxies. The tool decides whether and how they are published: `dispatches` has
    /// the dispatches that the tool published; do not add the two tables.
    pub struct Request: "requests" by time_ns, Events {
        /// Proxy, as in `proxies.proxy`.
        pub proxy: u32,
        /// Packet index in its proxy.
        pub index: u64 => "index",
        /// Process.
        pub pid: u32,
        /// Thread whose doorbell published it; 0 if the tool took it before any thread rang.
        pub tid: u32,
        /// Time of that doorbell.
        pub time_ns: u64 => "ns",
        /// Evidence that it is a dispatch, as in `dispatches.evidence`.
        pub evidence: Evidence,
        /// Time at which that thread reserved the index; null where that is not known.
        pub reserve_ns: Option<u64> => "ns",
        /// The kernel descriptor.
        pub kernel_object: u64 => "address",
        /// Name of the kernel; null if unknown.
        pub kernel: Option<Arc<str>>,
        /// The kernel arguments.
        pub kernarg: u64 => "address",
        /// Size of the grid.
        pub grid: [u32; 3] => "work items" ["grid_x", "grid_y", "grid_z"],
        /// Size of a workgroup.
        pub workgroup: [u16; 3] => "work items" ["workgroup_x", "workgroup_y", "workgroup_z"],
        /// Handle of the completion signal; 0 if it has none.
        pub completion_signal: u64,
        /// Innermost API call in which that thread rang, as in `dispatches.api_call`.
        pub api_call: Option<u64>,
        /// Stream of the innermost call around it that names one; null in the same case.
        pub stream: Option<u64>,
    }
}
