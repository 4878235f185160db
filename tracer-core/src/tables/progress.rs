//! Samples of queues.

use super::table;
use crate::event::Occasion;

table! {
    /// Samples of AQL queues whose indexes changed since the sample before. Events between two samples have no exact time. The GPU
    /// took packet `i` after the last sample with `read_index <= i` and before the first sample with `read_index > i`.
    pub struct Progress: "progress" by time_ns, Events {
        /// Queue, as in `queues.queue`.
        pub queue: u32,
        /// Process.
        pub pid: u32,
        /// Time before the sample.
        pub time_ns: u64 => "ns",
        /// Time after the sample.
        pub until_ns: u64 => "ns",
        /// Reason: `sample` (at an interval), `destroy` and `destroyed` (entry and return of DESTROY_QUEUE), `process-end` or
        /// `trace-end`.
        pub occasion: Occasion,
        /// Read index: the GPU had taken every lower one.
        pub read_index: u64 => "index",
        /// Write index: producers had reserved every lower one.
        pub write_index: u64 => "index",
        /// One past the highest index that doorbells had published by then; null if none.
        pub published_end: Option<u64> => "index",
    }
}
