//! User queues, as facts.

use serde::{Deserialize, Serialize};

/// How a queue came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrigin {
    /// Its CREATE_QUEUE was seen.
    Created,
    /// Found by a doorbell: it was there before, or its creation was lost.
    Adopted,
}

/// A user queue, with its final numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Number in the trace, from 0, in the order of first sight. Unlike addresses and KFD ids it is never reused.
    pub queue: u32,
    /// Process.
    pub pid: u32,
    /// How it came to be known.
    pub origin: QueueOrigin,
    /// KFD queue id (per process); of an adopted queue only if the KFD's files leave no choice, else `None`.
    pub queue_id: Option<u32>,
    /// KFD gpu id; of an adopted queue under the same condition.
    pub gpu_id: Option<u32>,
    /// `compute-aql`, `sdma`, ...; see `tracer_common::kfd::QueueType`.
    pub kind: String,
    /// Address of the `amd_queue_t` (the HSA queue handle); for other than AQL queues, of nothing: 0.
    pub handle: u64,
    /// Address of the write pointer.
    pub write_pointer: u64,
    /// Address of the ring.
    pub ring_base: u64,
    /// Bytes of the ring.
    pub ring_bytes: u64,
    /// Doorbell offset that the KFD gave; `None` if adopted.
    pub doorbell_offset: Option<u64>,
    /// Priority, 0 to 15; `None` if adopted.
    pub priority: Option<u32>,
    /// Whether the runtime created it for itself: for fills, and for copies by kernels. `None` if calls of `hsa_queue_create` may
    /// have been missed, nothing was submitted on it, or it is not an AQL queue.
    pub internal: Option<bool>,
    /// Entry of CREATE_QUEUE; `None` if adopted.
    pub create_enter_ns: Option<u64>,
    /// Exit of CREATE_QUEUE; for an adopted queue the first doorbell.
    pub created_ns: u64,
    /// Exit of DESTROY_QUEUE, or the process's end; `None` if it lived at the trace's end.
    pub destroyed_ns: Option<u64>,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Indexes published, whether their packets were read or not (AQL); submissions (SDMA).
    pub published: u64,
    /// Of an adopted queue: indexes that lay in its ring when it was found and that no doorbell that was seen names. They
    /// were published before, or never, and count nowhere else. `None` if its creation was seen.
    pub unclaimed: Option<u64>,
    /// Kernel dispatches among the published.
    pub dispatches: u64,
    /// Other packets among the published.
    pub other_packets: u64,
    /// Published indexes whose packets are unread.
    pub unread: u64,
    /// Indexes reserved but not published when it ended (write index last seen - highest published - 1).
    pub pending: u64,
    /// First index published, if any.
    pub first_index: Option<u64>,
    /// Last index published, if any.
    pub last_index: Option<u64>,
    /// Most packets seen between read and published index at a doorbell.
    pub max_depth: u64,
    /// Published indexes of [`super::Path::Unseen`]; all of them only if `watched_to_end`. `None` if nobody looked, or if what
    /// was looked at may have been published by doorbells that were lost.
    pub unseen: Option<u64>,
    /// Whether it was looked at when nothing could be published on it any more, or the recording ended; `None` for
    /// what is no AQL queue.
    pub watched_to_end: Option<bool>,
    /// Time of the last look; `None` if there was none.
    pub looked_ns: Option<u64>,
    /// Read index at the last look.
    pub read_index: Option<u64>,
    /// Indexes published, but not taken by the GPU, at the last look.
    pub in_flight: Option<u64>,
    /// Time at which the oldest of these had been published, at the latest; `None` if there are none.
    pub oldest_ns: Option<u64>,
    /// Time since which the read index has this value, at the latest.
    pub moved_ns: Option<u64>,
}

impl Queue {
    /// Whether its packets are those of the HSA specification.
    #[must_use]
    pub fn is_aql(&self) -> bool {
        self.kind == "compute-aql"
    }

    /// Whether it takes commands for a copy engine: no kernel can be submitted to it.
    #[must_use]
    pub fn is_sdma(&self) -> bool {
        self.kind.starts_with("sdma")
    }

    /// Whether kernels may be submitted to it in a form that nobody reads, as the commands of a PM4 queue.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        !self.is_aql() && !self.is_sdma()
    }
}
