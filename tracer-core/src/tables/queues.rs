//! User queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table;

/// How a queue was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum QueueOrigin {
    /// Its CREATE_QUEUE was seen.
    Created,
    /// A doorbell led to it. The queue existed before, or the event of its creation was lost.
    Adopted,
    /// The KFD's files list it for a process that existed before, without an HSA runtime. Its addresses are unknown, so tracer can
    /// neither see nor sample what is submitted to it.
    Listed,
    /// The log of its process's runtime has packets for it. Doorbells are not in a log.
    Logged,
}

/// Memory that holds a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum RingMemory {
    /// Memory of the host.
    Host,
    /// Memory of a GPU. Every read of it by a processor goes over the bus.
    Device,
}

table! {
    /// User queues, with their final counts.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Queue: "queues" by created_ns, Snapshots {
        /// Number of the queue in the trace, from 0, in the order of first sight; never reused.
        pub queue: u32,
        /// Process that it belongs to.
        pub pid: u32,
        /// How tracer found the queue: `created` (it saw CREATE_QUEUE), `adopted` (by a doorbell), or `listed` (by the KFD's files:
        /// its process existed before and has no HSA runtime, so no probe sees what is submitted to it), or `logged` (by the log of
        /// the runtime, which has packets, but no doorbells).
        pub origin: QueueOrigin,
        /// KFD queue id, unique in a process at a time; of an adopted queue only if the KFD's files leave no choice, else null.
        pub queue_id: Option<u32>,
        /// KFD gpu id; of an adopted queue under the same condition.
        pub gpu_id: Option<u32>,
        /// Queue type: `compute-aql`, `compute-pm4`, `sdma`, `sdma-xgmi`, ...; of a listed queue `compute` (either of the first two) or
        /// `other`.
        pub kind: String,
        /// The `amd_queue_t`, which is the HSA queue handle; 0 if it is not an AQL queue.
        pub handle: u64 => "address",
        /// The write pointer.
        pub write_pointer: u64 => "address",
        /// The ring.
        pub ring_base: u64 => "address",
        /// Size of the ring.
        pub ring_bytes: u64 => "bytes",
        /// Memory that holds the ring, by the process's allocations when it created the queue: `host` or `device`. Null if no
        /// allocation that tracer saw holds all of it, and it may be on a GPU.
        pub ring_memory: Option<RingMemory>,
        /// Doorbell offset that the KFD returned; null if adopted.
        pub doorbell_offset: Option<u64>,
        /// Priority, 0 to 15; null if adopted.
        pub priority: Option<u32>,
        /// Whether the runtime created it for itself: for fills, and for copies by kernels. False if `hsa_queue_create` or
        /// `hsa_amd_queue_create` returned it to the program; null if such calls may have been missed, nothing was submitted on it,
        /// or it is not an AQL queue.
        pub internal: Option<bool>,
        /// Entry of CREATE_QUEUE; null if adopted.
        pub create_enter_ns: Option<u64> => "ns",
        /// Exit of CREATE_QUEUE; of an adopted queue, its first doorbell.
        pub created_ns: u64 => "ns",
        /// Exit of DESTROY_QUEUE, or exit of the process; null if the queue existed at the end of the trace.
        pub destroyed_ns: Option<u64> => "ns",
        /// Doorbells rung.
        pub doorbells: u64 => "doorbells",
        /// Indexes published, read or not; of an SDMA queue, submissions.
        pub published: u64 => "packets",
        /// Of an adopted queue: indexes that were in its ring when tracer found it, and for which tracer saw no doorbell. They were
        /// published before, or never, and count nowhere else. Null if tracer saw its creation.
        pub unclaimed: Option<u64> => "packets",
        /// Kernel dispatches among the published.
        pub dispatches: u64 => "packets",
        /// Other packets among the published.
        pub other_packets: u64 => "packets",
        /// Published indexes whose packets could not be read.
        pub unread: u64 => "packets",
        /// Indexes reserved but not published at its end.
        pub pending: u64 => "packets",
        /// First index published; null if none was.
        pub first_index: Option<u64> => "index",
        /// Last index published; null if none was.
        pub last_index: Option<u64> => "index",
        /// Most packets between read index and published index at a doorbell.
        pub max_depth: u64 => "packets",
        /// Published indexes of path `unseen`, all of them only if `watched_to_end`; null if tracer took no sample, or if lost
        /// doorbells may have published packets that the GPU took.
        pub unseen: Option<u64> => "packets",
        /// Whether tracer sampled it after its last possible publication, or at the end of the recording; null if it is not an AQL
        /// queue.
        pub watched_to_end: Option<bool>,
        /// Time of the last sample; null if there was none.
        pub looked_ns: Option<u64> => "ns",
        /// Read index at the last sample: the GPU had taken every lower one.
        pub read_index: Option<u64> => "index",
        /// Published, but not taken by the GPU, at the last sample.
        pub in_flight: Option<u64> => "packets",
        /// Time at which the oldest of these was published, at the latest; null if there are none.
        pub oldest_ns: Option<u64> => "ns",
        /// Time since which the read index has this value, at the latest.
        pub moved_ns: Option<u64> => "ns",
    }
}

impl Queue {
    /// Returns whether its packets are those of the HSA specification.
    #[must_use]
    pub fn is_aql(&self) -> bool {
        self.kind == "compute-aql"
    }

    /// Returns whether it takes commands for a copy engine. No kernel can be submitted to such a queue.
    #[must_use]
    pub fn is_sdma(&self) -> bool {
        self.kind.starts_with("sdma")
    }

    /// Returns whether kernels may be submitted to it in a form that tracer does not read, such as the commands of a PM4 queue.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        !self.is_aql() && !self.is_sdma()
    }

    /// Returns whether it is unknown how many packets the GPU took without a doorbell that was seen: of a compute queue that tracer
    /// did not sample after its last use, or, while it exists (`ended` is false), at all.
    #[must_use]
    pub fn is_open(&self, ended: bool) -> bool {
        let sampled = self.unseen.is_some() && (!ended || self.watched_to_end == Some(true));
        !(self.is_sdma() || self.is_aql() && sampled)
    }
}
