//! Samples of queues, as facts.

use crate::event::Occasion;

/// A sample of a queue whose indexes differ from the previous sample.
///
/// The GPU took packet `i` after the last sample whose read index is `i` or less, and before the first sample whose read index is
/// greater. Nothing more is known of its retirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Queue number in the trace.
    pub queue: u32,
    /// Process.
    pub pid: u32,
    /// Time before the sample.
    pub time_ns: u64,
    /// Time after the sample.
    pub until_ns: u64,
    /// Reason for the sample.
    pub occasion: Occasion,
    /// Read index. The GPU had taken every lower index.
    pub read_index: u64,
    /// Write index. Producers had reserved every lower index.
    pub write_index: u64,
    /// One past the highest index that doorbells had published; `None` if none was known yet.
    pub published_end: Option<u64>,
}
