//! Queues and processes of a report: a limited number of rows, and for the others only what the totals need.

use std::collections::{BTreeMap, HashMap};

use crate::tables::{Process, Queue, QueueOrigin};
use crate::tally::more;

/// Queues, by number. If a queue has several rows, the last one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    kept: BTreeMap<u32, Queue>,
    forgotten: Totals,
}

/// Totals over queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Number of queues.
    pub(super) queues: u64,
    /// Queues whose commands tracer does not read.
    pub(super) opaque: u64,
    /// Compute queues of which it is unknown whether all packets were found that bypassed every probe.
    pub(super) open: u64,
    /// Dispatches on internal queues.
    pub(super) internal: u64,
    /// Whether it is unknown for any queue with dispatches whether it is internal.
    pub(super) internal_unknown: bool,
    /// Whether a queue existed before it was watched.
    pub(super) adopted: bool,
}

impl Totals {
    fn add(&mut self, queue: &Queue) {
        self.queues += 1;
        self.opaque += u64::from(queue.is_opaque());
        self.open += u64::from(queue.is_open(true));
        match queue.internal {
            Some(true) => more(&mut self.internal, queue.dispatches),
            Some(false) => {}
            None => self.internal_unknown |= queue.dispatches > 0,
        }
        self.adopted |= queue.is_aql() && queue.origin == QueueOrigin::Adopted;
    }
}

impl Queues {
    /// Adds a queue. Keeps the rows of at most `most` queues, the last ones.
    pub(super) fn add(&mut self, queue: &Queue, most: usize) {
        self.kept.insert(queue.queue, queue.clone());
        if self.kept.len() > most
            && let Some((_, first)) = self.kept.pop_first()
        {
            self.forgotten.add(&first);
        }
    }

    /// Returns the totals over all queues, also over those whose rows were not kept.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.forgotten;
        self.kept.values().for_each(|queue| totals.add(queue));
        totals
    }

    /// Returns the rows that were kept, and the number of rows that were not.
    pub(super) fn rows(self) -> (Vec<Queue>, u64) {
        (self.kept.into_values().collect(), self.forgotten.queues)
    }
}

/// Processes, by first event and id. If a process has several rows, the last one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Processes {
    kept: BTreeMap<(u64, u32), Process>,
    forgotten: u64,
    /// By id: whether it is known, for every process with this id, whether its runtime passes doorbells to the thunk library.
    thunks: HashMap<u32, bool>,
}

impl Processes {
    /// Adds a process. Keeps the rows of at most `most` processes, the last ones.
    pub(super) fn add(&mut self, process: &Process, most: usize) {
        *self.thunks.entry(process.pid).or_insert(true) &= process.thunk.is_some();
        self.kept.insert((process.first_ns, process.pid), process.clone());
        if self.kept.len() > most && self.kept.pop_first().is_some() {
            self.forgotten += 1;
        }
    }

    /// Returns whether a process with this id is known, and whether it is known for every such process whether its runtime passes
    /// doorbells to the thunk library.
    pub(super) fn thunk_is_known(&self, pid: u32) -> bool {
        self.thunks.get(&pid) == Some(&true)
    }

    /// Returns the rows that were kept, and the number of rows that were not.
    pub(super) fn rows(self) -> (Vec<Process>, u64) {
        (self.kept.into_values().collect(), self.forgotten)
    }
}
