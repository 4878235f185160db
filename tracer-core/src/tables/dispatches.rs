//! Kernel dispatches, and the paths that they took.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracer_common::aql::DispatchForm;

use super::table;

/// The path that a submission took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Path {
    /// A store to a doorbell from user space.
    Doorbell,
    /// A job on a ring of the kernel driver.
    Ring,
    /// A call of hsaKmtQueueRingDoorbell.
    Thunk,
    /// The GPU took it although no observed doorbell had published it. Either a thread stored to the doorbell past every probe, or
    /// the GPU read the write index by itself when it mapped the queue.
    Unseen,
}

impl Path {
    /// Every path.
    pub const ALL: [Self; 4] = [Self::Doorbell, Self::Ring, Self::Thunk, Self::Unseen];
}

/// Evidence for the kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Evidence {
    /// The header was valid when it was read.
    Header,
    /// The GPU had consumed the packet and set the header back to INVALID. The slot was not reused yet, and the body can only be a
    /// kernel dispatch.
    Body,
    /// The log of the runtime says that it wrote the packet. Nobody read the packet, or saw the doorbell.
    Log,
}

impl Evidence {
    /// Every kind of evidence.
    pub const ALL: [Self; 3] = [Self::Header, Self::Body, Self::Log];
}

/// The form of a dispatch's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Form {
    /// The packet of the HSA specification.
    Kernel,
    /// AMD's vendor packet of format 3: a grid of clusters of workgroups.
    ExtKernel,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::ExtKernel];
}

impl From<DispatchForm> for Form {
    fn from(form: DispatchForm) -> Self {
        match form {
            DispatchForm::Kernel => Self::Kernel,
            DispatchForm::ExtKernel => Self::ExtKernel,
        }
    }
}

table! {
    /// Kernel dispatch packets that were published.
    pub struct Dispatch: "dispatches" by time_ns, Events {
        /// Queue, as in `queues.queue`.
        pub queue: u32,
        /// Packet index in its queue, not modulo the ring's size; if a log does not have it, that of the log's packet before, plus 1.
        pub index: u64 => "index",
        /// Process.
        pub pid: u32,
        /// Thread whose doorbell published it; 0 if the path is `unseen`, or the evidence is `log`.
        pub tid: u32,
        /// Time of that doorbell.
        pub time_ns: u64 => "ns",
        /// Path: `doorbell`, `ring`, `thunk` or `unseen`.
        pub path: Path,
        /// Evidence that it is a dispatch: `header` (valid when read), `body` (already consumed), or `log` (the runtime's log says
        /// that it wrote the packet, and rings for it: nobody saw either).
        pub evidence: Evidence,
        /// Form of the packet: `kernel` (of the HSA specification) or `ext-kernel` (AMD's vendor packet of format 3, a grid of clusters
        /// of workgroups). Null in traces of versions that knew the first form only.
        pub form: Option<Form>,
        /// Time at which that thread reserved the index; null where reserves were not traced.
        pub reserve_ns: Option<u64> => "ns",
        /// Where `reserve_ns` is null: latest time at which the index was seen not to be reserved yet.
        pub unreserved_ns: Option<u64> => "ns",
        /// Packet header, 16 bits, as read; its type is INVALID if the evidence is `body`.
        pub header: u16,
        /// Dimensions of the grid, 1 to 3.
        pub dimensions: u16,
        /// The kernel descriptor.
        pub kernel_object: u64 => "address",
        /// Name of the kernel, demangled; null if no code object that is known was loaded there at that time.
        pub kernel: Option<Arc<str>>,
        /// The kernel arguments.
        pub kernarg: u64 => "address",
        /// Size of the grid.
        pub grid: [u32; 3] => "work items" ["grid_x", "grid_y", "grid_z"],
        /// Size of a workgroup.
        pub workgroup: [u16; 3] => "work items" ["workgroup_x", "workgroup_y", "workgroup_z"],
        /// Private memory of a work item.
        pub private_segment: u32 => "bytes",
        /// Group memory (LDS) of a workgroup.
        pub group_segment: u32 => "bytes",
        /// Handle of the completion signal; 0 if it has none.
        pub completion_signal: u64,
        /// Correlation id that HIP writes under a profiler; 0 otherwise.
        pub correlation: u64,
        /// Innermost API call in which that thread rang, as in `api_calls.call`; null where in none, where calls were not recorded,
        /// or where the packet may be another thread's (neither named by the doorbell's value nor known to be reserved by that
        /// thread).
        pub api_call: Option<u64>,
        /// Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null in the same case.
        pub stream: Option<u64>,
    }
}
