//! Processes that mapped something that could not be opened: tracer counts a loss, and tries again.

use std::collections::{BTreeMap, HashSet};

use tracer_core::losses::LIBRARY_UNOPENED;

use super::{Work, lock};
use crate::{
    confined::{NotRead, ReadError},
    session, sys,
    target::proc_maps::{FileId, Mapping},
};

/// The time between two tries, ns.
const INTERVAL_NS: u64 = 1_000_000_000;
/// The maximum number of tries for one process after its last mapping: a file that can't be opened for so long never can.
const TRIES: u32 = 60;
/// The maximum number of files and processes that are remembered, so that each is reported once. Beyond it, tracer begins anew:
/// inodes and process ids are used again.
const MAX_TOLD: usize = 4096;

/// The processes that are to be tried again.
#[derive(Default)]
pub struct Retry {
    /// The waiting processes, by process id.
    waiting: BTreeMap<u32, Waiting>,
    /// The time of the next try, CLOCK_MONOTONIC ns.
    due_ns: u64,
    files: HashSet<FileId>,
    pids: HashSet<u32>,
}

struct Waiting {
    generation: u32,
    tries: u32,
    /// Set if the process is being examined again, or will be as soon as a thread is free.
    under_way: bool,
}

impl Retry {
    /// Sets the generation of a process that is to be tried again.
    pub(super) fn is_of(&mut self, pid: u32, generation: u32) {
        if let Some(waiting) = self.waiting.get_mut(&pid) {
            waiting.generation = generation;
        }
    }

    fn add(&mut self, pid: u32) {
        self.waiting.entry(pid).or_insert(Waiting {
            generation: session::GENERATION,
            tries: 0,
            under_way: false,
        });
    }
}

impl Work {
    /// Records that a file that the process mapped could not be examined.
    pub(super) fn unopened(&self, pid: u32, mapping: &Mapping, error: &NotRead) {
        let warning = format!("cannot examine {}, will try again: {error}", mapping.path);
        self.lost(pid, warning, |retry| {
            bound(&mut retry.files);
            retry.files.insert(mapping.file.clone())
        });
    }

    /// Records that the mappings or the memory of the process could not be read.
    pub(super) fn unread(&self, pid: u32, error: &NotRead) {
        if is_gone(error) {
            return;
        }
        let warning = format!("cannot examine process {pid}, will try again: {error}");
        self.lost(pid, warning, |retry| {
            bound(&mut retry.pids);
            retry.pids.insert(pid)
        });
    }

    fn lost(&self, pid: u32, warning: String, is_new: impl FnOnce(&mut Retry) -> bool) {
        let mut retry = lock(&self.retry);
        retry.add(pid);
        if is_new(&mut retry) {
            drop(retry);
            let mut inventory = lock(&self.inventory);
            inventory.warn(warning);
            inventory.lose(LIBRARY_UNOPENED);
        }
    }

    /// Returns the processes whose examination failed, with their generations, once the next try is due.
    pub(super) fn due(&self) -> Vec<(u32, u32)> {
        let mut retry = lock(&self.retry);
        let now = sys::monotonic_ns();
        if retry.waiting.is_empty() || now < retry.due_ns {
            return Vec::new();
        }
        retry.due_ns = now.saturating_add(INTERVAL_NS);
        let due = retry.waiting.iter_mut().filter(|(_, waiting)| !waiting.under_way);
        due.map(|(&pid, waiting)| {
            waiting.under_way = true;
            (pid, waiting.generation)
        })
        .collect()
    }

    /// Examines a process again, after an examination that failed.
    pub(super) fn again(&self, pid: u32, generation: u32) {
        let Some(waiting) = lock(&self.retry).waiting.remove(&pid) else {
            return;
        };
        self.scan(pid, generation, false);
        let tries = waiting.tries + 1;
        let mut retry = lock(&self.retry);
        if tries >= TRIES {
            retry.waiting.remove(&pid);
        } else if let Some(again) = retry.waiting.get_mut(&pid) {
            again.tries = tries;
        }
    }
}

fn bound<T>(told: &mut HashSet<T>) {
    if told.len() >= MAX_TOLD {
        told.clear();
    }
}

/// Returns whether a process is gone, and not only unreadable.
fn is_gone(error: &NotRead) -> bool {
    matches!(error, NotRead::Read(ReadError::Refused(libc::ENOENT | libc::ESRCH)))
}
