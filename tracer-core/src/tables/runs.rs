//! Rows that each replace many rows while the disk does not keep up. A run has the values that its rows have in common, and
//! identifies those rows.
//!
//! Nothing in a run is a guess. Values that its rows do not have in common are absent.

use std::sync::Arc;

use super::{Evidence, Path, table};

table! {
    /// Doorbells that have no rows in `doorbells`, because the disk was too slow: each is in one run. A run has doorbells of one
    /// queue, within less than 10 ms; the indexes of each doorbell follow those of the doorbell before. The row has their common
    /// values; their other values are unknown.
    pub struct DoorbellRun: "doorbell_runs" by begin_ns, Runs {
        /// Queue, as in `queues.queue`; null if tracer could not read the memory of the process.
        pub queue: Option<u32>,
        /// Process.
        pub pid: u32,
        /// Whether the value of each is an index that was not reserved.
        pub beyond: bool,
        /// Number of them.
        pub count: u64 => "doorbells",
        /// The highest value stored.
        pub highest_value: u64 => "index",
        /// Indexes that they published together.
        pub published: u64 => "packets",
        /// The first index published, as value and number of the first doorbell that published any say; null if none did.
        pub first_index: Option<u64> => "index",
        /// The last index published: `published` indexes from the first one on; null in the same case.
        pub last_index: Option<u64> => "index",
        /// Time of the first.
        pub begin_ns: u64 => "ns",
        /// Time of the last.
        pub end_ns: u64 => "ns",
    }
}

table! {
    /// Dispatches that have no rows in `dispatches`, because the disk was too slow: each is in one run. A run has consecutive
    /// indexes of one queue, within less than 10 ms. The row has their common values; their other values are unknown. The
    /// dispatches of a trace are in both tables.
    pub struct DispatchRun: "dispatch_runs" by begin_ns, Runs {
        /// Queue, as in `queues.queue`.
        pub queue: u32,
        /// Process.
        pub pid: u32,
        /// Path of each: `doorbell`, `ring`, `thunk` or `unseen`.
        pub path: Path,
        /// Evidence that each is a dispatch: `header` (valid when read), `body` (already consumed) or `log`.
        pub evidence: Evidence,
        /// The kernel descriptor; null if the run has several kernels.
        pub kernel_object: Option<u64> => "address",
        /// Name of the kernel; null if unknown, or if the run has several.
        pub kernel: Option<Arc<str>>,
        /// Packet index of the first.
        pub first_index: u64 => "index",
        /// Packet index of the last.
        pub last_index: u64 => "index",
        /// Number of them: every index from the first to the last.
        pub count: u64 => "packets",
        /// Time of the earliest of their doorbells.
        pub begin_ns: u64 => "ns",
        /// Time of the latest of their doorbells.
        pub end_ns: u64 => "ns",
    }
}

impl DispatchRun {
    /// Returns whether the run counts each index of its range once. A run of a damaged trace may not.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        length(self.first_index, self.last_index) == Some(self.count)
    }
}

impl DoorbellRun {
    /// Returns whether the run counts each index of its range once. A run of a damaged trace may not.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let length = match (self.first_index, self.last_index) {
            (Some(first), Some(last)) => length(first, last),
            (None, None) => Some(0),
            _ => None,
        };
        length == Some(self.published) && self.count > 0
    }
}

/// Returns the number of indexes from the first to the last.
fn length(first: u64, last: u64) -> Option<u64> {
    last.checked_sub(first)?.checked_add(1)
}
