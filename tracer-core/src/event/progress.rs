//! Looks at how far a queue is.

use serde::{Deserialize, Serialize};

use super::Origin;

/// Why a queue was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Occasion {
    /// From time to time, by the collector.
    Sample,
    /// By the collector, when it stops watching.
    TraceEnd,
    /// By a thread that enters DESTROY_QUEUE.
    Destroy,
    /// By a thread that returns from DESTROY_QUEUE: the GPU takes nothing of it any more.
    Destroyed,
    /// By a thread that ends with its process. The GPU may go on for a moment.
    ProcessEnd,
}

impl Occasion {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::TraceEnd => "trace-end",
            Self::Destroy => "destroy",
            Self::Destroyed => "destroyed",
            Self::ProcessEnd => "process-end",
        }
    }
}

/// How far a queue's producers and its GPU were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The queue's process; the thread if it was its own, else 0; the time before the read.
    pub origin: Origin,
    /// The time after it.
    pub after_ns: u64,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Read index, read first.
    pub read_index: u64,
    /// Write index.
    pub write_index: u64,
    /// One past the highest index that doorbells published whose probes ran before that, those included whose events were
    /// lost; `None` if nobody knows.
    pub rung_end: Option<u64>,
    /// Why.
    pub occasion: Occasion,
}
