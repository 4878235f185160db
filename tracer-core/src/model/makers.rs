//! Which queues their program made, and which its runtime did for itself: for fills, for copies by kernels, for scratch
//! memory.
//!
//! A queue is the program's if `hsa_queue_create` gave it. It is the runtime's own only if no call can have given it: all
//! were seen since before it was created, and each gave a queue that is known. A tool that puts queues of its own in front
//! of the runtime's gives handles that no queue has: then nothing is said of those that were not given.

use std::collections::HashSet;

use super::queues::Queues;
use super::write_pointer;
use crate::event::HsaQueue;
use crate::losses;

/// Who made a queue, as far as calls show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// Its program.
    Program,
    /// Nobody so far whose calls are seen.
    NotSeen,
    /// Calls may have been missed.
    Unknown,
}

/// What is known of calls.
#[derive(Debug, Default)]
pub(super) struct Makers {
    /// Whether they are seen in every runtime.
    pub(super) watched: bool,
    /// Whether some may have been lost.
    lost: bool,
    /// Processes whose calls may have been missed.
    unsure: HashSet<u32>,
}

impl Makers {
    /// Whether a call that was not seen was not made.
    pub(super) fn are_known(&self) -> bool {
        self.watched && !self.lost
    }

    /// Events were lost.
    pub(super) fn lost(&mut self, source: &str) {
        self.lost |= losses::hide_queue_calls(source);
    }

    /// A process was there before its calls were watched.
    pub(super) fn attached(&mut self, pid: u32) {
        self.unsure.insert(pid);
    }

    /// A process ended, or runs a new program.
    pub(super) fn forget(&mut self, pid: u32) {
        self.unsure.remove(&pid);
    }

    /// Who made a queue that was just created.
    pub(super) fn of_new(&self, pid: u32) -> Maker {
        if self.unsure.contains(&pid) {
            Maker::Unknown
        } else {
            Maker::NotSeen
        }
    }
}

impl Queues {
    /// A program made a queue.
    pub(super) fn made(&mut self, event: &HsaQueue) {
        let pid = event.origin.pid;
        match self.at(pid, write_pointer(event.handle), event.exit_ns) {
            Some(queue) if event.handle != 0 => queue.maker = Maker::Program,
            _ => {
                self.makers.unsure.insert(pid);
                let others = self.of(pid).filter(|queue| queue.maker == Maker::NotSeen);
                others.for_each(|queue| queue.maker = Maker::Unknown);
            }
        }
    }
}
