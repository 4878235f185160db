//! Queues and processes of a report: a limited number of rows, and for the others only what the totals need.

use std::collections::{BTreeMap, HashMap};

use crate::tables::{Process, Queue, QueueOrigin};

/// Queues, by number. If a queue has several rows, the last one counts.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    kept: BTreeMap<u32, Queue>,
    most: usize,
    forgotten: Told,
}

/// Totals over queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Number of queues.
    pub(super) queues: u64,
    /// Queues whose commands tracer does not read.
    pub(super) opaque: u64,
    /// Compute queues of which it is unknown whether all packets were found that bypassed every probe.
    pub(super) open: u64,
    /// Dispatches on internal queues; `None` if it is unknown for any queue with dispatches whether it is internal.
    pub(super) internal: Option<u64>,
    /// Whether a queue existed before it was watched.
    pub(super) adopted: bool,
}

impl Told {
    const NOTHING: Self = Self {
        queues: 0,
        opaque: 0,
        open: 0,
        internal: Some(0),
        adopted: false,
    };

    fn add(&mut self, queue: &Queue) {
        self.queues += 1;
        self.opaque += u64::from(queue.is_opaque());
        let whole = queue.is_aql() && queue.unseen.is_some() && queue.watched_to_end == Some(true);
        self.open += u64::from(!queue.is_sdma() && !whole);
        if queue.dispatches > 0 {
            self.internal = self.internal.zip(queue.internal).map(|(sum, internal)| {
                let more = if internal { queue.dispatches } else { 0 };
                sum.saturating_add(more)
            });
        }
        self.adopted |= queue.is_aql() && queue.origin == QueueOrigin::Adopted;
    }
}

impl Queues {
    /// Creates an empty collection that keeps at most `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self {
            kept: BTreeMap::new(),
            most,
            forgotten: Told::NOTHING,
        }
    }

    pub(super) fn add(&mut self, queue: &Queue) {
        self.kept.insert(queue.queue, queue.clone());
        self.keep(self.most);
    }

    /// Keeps at most `most` rows from now on.
    pub(super) fn keep(&mut self, most: usize) {
        self.most = most;
        while self.kept.len() > most
            && let Some((_, first)) = self.kept.pop_first()
        {
            self.forgotten.add(&first);
        }
    }

    /// Returns the totals over all queues, also over those whose rows were not kept.
    pub(super) fn told(&self) -> Told {
        let mut told = self.forgotten;
        self.kept.values().for_each(|queue| told.add(queue));
        told
    }

    /// Returns the rows that were kept, and the number of rows that were not.
    pub(super) fn rows(self) -> (Vec<Queue>, u64) {
        (self.kept.into_values().collect(), self.forgotten.queues)
    }
}

/// Processes, by first event and id. If a process has several rows, the last one counts.
#[derive(Clone, Debug)]
pub(super) struct Processes {
    kept: BTreeMap<(u64, u32), Process>,
    most: usize,
    forgotten: u64,
    /// By id: whether it is known, for every process with this id, whether its runtime passes doorbells to the thunk library.
    thunks: HashMap<u32, bool>,
}

impl Processes {
    /// Creates an empty collection that keeps at most `most` rows.
    pub(super) fn new(most: usize) -> Self {
        Self {
            kept: BTreeMap::new(),
            most,
            forgotten: 0,
            thunks: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, process: &Process) {
        *self.thunks.entry(process.pid).or_insert(true) &= process.thunk.is_some();
        self.kept.insert((process.first_ns, process.pid), process.clone());
        self.keep(self.most);
    }

    /// Keeps at most `most` rows from now on.
    pub(super) fn keep(&mut self, most: usize) {
        self.most = most;
        while self.kept.len() > most && self.kept.pop_first().is_some() {
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
