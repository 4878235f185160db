//! Samples of the progress of queues.

use serde::Serialize;

use super::Origin;

/// Why a queue was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Occasion {
    /// The collector samples periodically.
    Sample,
    /// The collector stops watching. Doorbells are still recorded.
    TraceEnd,
    /// The collector has stopped watching: doorbells before the sample are recorded, and those since the stop are not.
    Detached,
    /// A thread enters DESTROY_QUEUE.
    Destroy,
    /// A thread returns from DESTROY_QUEUE. The GPU takes no more packets from the queue.
    Destroyed,
    /// A thread exits with its process. The GPU may continue for a moment.
    ProcessEnd,
}

/// A sample of a queue's indexes: the progress of its producers and its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The queue's process; the thread if it belongs to that process, else 0; and the time before the read.
    pub origin: Origin,
    /// Time after the read.
    pub after_ns: u64,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Read index. It is read first.
    pub read_index: u64,
    /// Write index.
    pub write_index: u64,
    /// One past the highest index published by doorbells whose probes ran before the sample, including doorbells whose events were
    /// lost; `None` if unknown.
    pub rung_end: Option<u64>,
    /// Reason for the sample.
    pub occasion: Occasion,
}
