//! Looks at queues, as facts.

use crate::event::Occasion;

/// A look at a queue that found it elsewhere than the one before.
///
/// Packet `i` was taken by the GPU after the last look whose read index is `i` or less, and before the first one whose
/// read index is above: that is what is known of its retirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Queue, by its number in the trace.
    pub queue: u32,
    /// Process.
    pub pid: u32,
    /// Time before the look.
    pub time_ns: u64,
    /// Time after it.
    pub until_ns: u64,
    /// Why it was looked at.
    pub occasion: Occasion,
    /// Read index: the GPU had taken every lower one.
    pub read_index: u64,
    /// Write index: producers had reserved every lower one.
    pub write_index: u64,
    /// One past the highest index that doorbells had published; `None` if none was known yet.
    pub published_end: Option<u64>,
}
