//! Rows that each replace many rows while the disk does not keep up. A run has the values that its rows have in common, and
//! identifies those rows.
//!
//! Nothing in a run is a guess. Values that its rows do not have in common are absent.

use std::sync::Arc;

use super::{Evidence, Path};

/// Kernel dispatches with consecutive indexes of one queue that have no rows of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchRun {
    /// Queue number in the trace ([`super::Queue::queue`]).
    pub queue: u32,
    /// Process.
    pub pid: u32,
    /// The path that all of them took.
    pub path: Path,
    /// Evidence for the kind of each of them.
    pub evidence: Evidence,
    /// Address of the kernel descriptor; `None` if there are several.
    pub kernel_object: Option<u64>,
    /// Name of the kernel; `None` if it is unknown, or if there are several.
    pub kernel: Option<Arc<str>>,
    /// Packet index of the first dispatch.
    pub first_index: u64,
    /// Packet index of the last dispatch.
    pub last_index: u64,
    /// Number of dispatches: every index from the first to the last.
    pub count: u64,
    /// Time of the earliest of their doorbells, in ns.
    pub begin_ns: u64,
    /// Time of the latest of their doorbells, in ns.
    pub end_ns: u64,
}

/// Stores to the doorbell of one AQL queue that have no rows of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorbellRun {
    /// Queue number in the trace; `None` if the queue's memory could not be read.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Whether the value of each of these doorbells names an index that was not reserved.
    pub beyond: bool,
    /// Number of doorbells.
    pub count: u64,
    /// The highest value stored.
    pub highest_value: u64,
    /// Number of indexes that they published: every index from `first_index` to `last_index`, or none.
    pub published: u64,
    /// The first index published; `None` if there is none.
    pub first_index: Option<u64>,
    /// The last index published; `None` if there is none.
    pub last_index: Option<u64>,
    /// Time of the earliest doorbell, in ns.
    pub begin_ns: u64,
    /// Time of the latest doorbell, in ns.
    pub end_ns: u64,
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
