//! User queues, as facts.

use serde::{Deserialize, Serialize};

/// How a queue was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrigin {
    /// Its CREATE_QUEUE was seen.
    Created,
    /// A doorbell led to it. The queue existed before, or the event of its creation was lost.
    Adopted,
}

/// A user queue, with its final numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Number in the trace, from 0, in the order of the first observation. It is never reused, unlike addresses and KFD ids.
    pub queue: u32,
    /// Process.
    pub pid: u32,
    /// How it was found.
    pub origin: QueueOrigin,
    /// KFD queue id (per process). For an adopted queue it is known only if the KFD's files leave no choice, else `None`.
    pub queue_id: Option<u32>,
    /// KFD gpu id; for an adopted queue under the same condition.
    pub gpu_id: Option<u32>,
    /// `compute-aql`, `sdma`, ...; see `tracer_common::kfd::QueueType`.
    pub kind: String,
    /// Address of the `amd_queue_t` (the HSA queue handle); 0 for a queue that is not an AQL queue.
    pub handle: u64,
    /// Address of the write pointer.
    pub write_pointer: u64,
    /// Address of the ring.
    pub ring_base: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Doorbell offset assigned by the KFD; `None` if adopted.
    pub doorbell_offset: Option<u64>,
    /// Priority, 0 to 15; `None` if adopted.
    pub priority: Option<u32>,
    /// Whether the runtime created it for itself: for fills, and for copies by kernels. `None` if calls of `hsa_queue_create` may
    /// have been missed, if nothing was submitted on it, or if it is not an AQL queue.
    pub internal: Option<bool>,
    /// Time of entry of CREATE_QUEUE; `None` if adopted.
    pub create_enter_ns: Option<u64>,
    /// Time of exit of CREATE_QUEUE; for an adopted queue, of the first doorbell.
    pub created_ns: u64,
    /// Time of exit of DESTROY_QUEUE, or of the process's exit; `None` if the queue existed at the end of the trace.
    pub destroyed_ns: Option<u64>,
    /// Number of doorbells rung.
    pub doorbells: u64,
    /// Number of published indexes, whether their packets were read or not (AQL), or of submissions (SDMA).
    pub published: u64,
    /// For an adopted queue: indexes that were in its ring when it was found, and that no observed doorbell names. They were
    /// published before, or never, and are counted nowhere else. `None` if the creation of the queue was seen.
    pub unclaimed: Option<u64>,
    /// Kernel dispatches among the published packets.
    pub dispatches: u64,
    /// Other packets among the published packets.
    pub other_packets: u64,
    /// Published indexes whose packets are unread.
    pub unread: u64,
    /// Indexes that were reserved but not published at its end (write index last seen - highest published - 1).
    pub pending: u64,
    /// First index published, if any.
    pub first_index: Option<u64>,
    /// Last index published, if any.
    pub last_index: Option<u64>,
    /// Largest number of packets between the read index and the published index, as seen at a doorbell.
    pub max_depth: u64,
    /// Published indexes with [`super::Path::Unseen`]. The number is complete only if `watched_to_end`. `None` if the queue was
    /// never sampled, or if doorbells that were lost may have published these indexes.
    pub unseen: Option<u64>,
    /// Whether the queue was sampled when nothing could be published on it any more, or when the recording ended; `None` if it is
    /// not an AQL queue.
    pub watched_to_end: Option<bool>,
    /// Time of the last sample; `None` if there was none.
    pub looked_ns: Option<u64>,
    /// Read index at the last sample.
    pub read_index: Option<u64>,
    /// Indexes that were published but not taken by the GPU at the last sample.
    pub in_flight: Option<u64>,
    /// Latest possible time at which the oldest of these indexes was published; `None` if there are none.
    pub oldest_ns: Option<u64>,
    /// Latest possible time since which the read index has had this value.
    pub moved_ns: Option<u64>,
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
}
