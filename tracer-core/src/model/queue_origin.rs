//! Distinguishes queues that the program created from queues that its runtime created for itself: for fills, for copies by kernels,
//! for scratch memory.
//!
//! A queue belongs to the program if `hsa_queue_create` returned it. It belongs to the runtime only if no call can have returned
//! it: all calls since before its creation were seen, and each returned a known queue. A tool that puts its own queues in front of
//! the runtime's returns handles that belong to no queue. In that case the model says nothing of queues that no call returned.

use std::collections::HashSet;

use crate::losses;

/// Creator of a queue, as far as calls show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creator {
    /// The program.
    Program,
    /// No call that was seen so far.
    NotSeen,
    /// Calls may have been missed.
    Unknown,
}

/// Knowledge of the calls of `hsa_queue_create`.
#[derive(Debug, Default)]
pub(super) struct Creators {
    /// Whether calls are seen in every runtime.
    pub(super) watched: bool,
    /// Whether events of calls may have been lost.
    lost: bool,
    /// Processes whose calls may have been missed.
    unsure: HashSet<u32>,
}

impl Creators {
    /// Returns whether every call is seen.
    pub(super) fn are_known(&self) -> bool {
        self.watched && !self.lost
    }

    /// Notes lost events.
    pub(super) fn lost(&mut self, source: &str) {
        self.lost |= losses::hide_queue_calls(source);
    }

    /// Notes a process that existed before its calls were watched.
    pub(super) fn attached(&mut self, pid: u32) {
        self.unsure.insert(pid);
    }

    /// Forgets a process that exited, or that runs a new program.
    pub(super) fn forget(&mut self, pid: u32) {
        self.unsure.remove(&pid);
    }

    /// Returns the creator of a queue that was just created.
    pub(super) fn of_new(&self, pid: u32) -> Creator {
        if self.unsure.contains(&pid) {
            Creator::Unknown
        } else {
            Creator::NotSeen
        }
    }
}
