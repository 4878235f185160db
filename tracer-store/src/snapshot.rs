//! Rows of things that continue to live: the last row of each thing counts.
//!
//! Queues, proxies, processes, code objects and counters become facts when they end, but a recorder can be killed before that. So
//! it may push a row of one at any time, with its present state, and push it again later. [`Changes`] has what the recorder knows
//! of such a table: it hands over only rows that are new or different. The writer thread has the table itself, a [`Snapshot`].
//! After each change, the thread writes it as one part that replaces the previous one: on disk there is one row per thing.
//!
//! A thing that has ended does not change any more. The recorder forgets it as soon as it has handed over its last row. After
//! [`SEALED`] such rows, the thread makes them a part of their own, which is never replaced, and forgets them, too. So memory and
//! writes grow with the things that live, not with all things that ever lived.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::{Fact, Table};

use crate::columns::Columns;

/// The number of rows of ended things that become a part of their own.
pub(crate) const SEALED: usize = 4096;

/// The key that distinguishes things of one table.
type Key = (u32, u64);

/// Rows that changed: those of things that may continue to live, and the last rows of things that have ended.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) living: Vec<Fact>,
    pub(crate) ended: Vec<Fact>,
}

impl Changed {
    /// Returns the bytes that the rows take, without their text.
    pub(crate) const fn bytes(&self) -> usize {
        (self.living.len() + self.ended.len()) * size_of::<Fact>()
    }
}

/// The recorder's side of a table: which rows it must hand over.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The newest row of each thing that may continue to live.
    living: BTreeMap<Key, Fact>,
    /// The things among them whose row was not handed over.
    changed: BTreeSet<Key>,
    /// Last rows that were not handed over.
    ended: BTreeMap<Key, Fact>,
}

impl Changes {
    /// Takes a row, which replaces the row of the same thing. Returns whether there is anything to hand over.
    pub(crate) fn push(&mut self, fact: &Fact) -> bool {
        if let Some(key) = key(fact) {
            if let Some(last) = self.ended.get_mut(&key) {
                *last = fact.clone();
            } else if self.living.get(&key) != Some(fact) {
                self.living.insert(key, fact.clone());
                self.changed.insert(key);
            }
        }
        !self.is_empty()
    }

    /// Takes the last row of a thing that has ended.
    pub(crate) fn push_last(&mut self, fact: &Fact) {
        if let Some(key) = key(fact) {
            self.living.remove(&key);
            self.changed.remove(&key);
            self.ended.insert(key, fact.clone());
        }
    }

    /// Returns the rows to hand over. They count as handed over from here on.
    pub(crate) fn take(&mut self) -> Changed {
        let changed = std::mem::take(&mut self.changed).into_iter();
        Changed {
            living: changed.filter_map(|key| self.living.get(&key).cloned()).collect(),
            ended: std::mem::take(&mut self.ended).into_values().collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.ended.is_empty()
    }
}

/// The rows of a table that are not sealed: the writer thread's side.
pub(crate) struct Snapshot {
    table: Table,
    /// Rows of things that may continue to live.
    living: BTreeMap<Key, Fact>,
    /// The last rows of things that have ended.
    ended: BTreeMap<Key, Fact>,
}

impl Snapshot {
    pub(crate) const fn new(table: Table) -> Self {
        Self {
            table,
            living: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Takes changed rows.
    pub(crate) fn apply(&mut self, changed: &Changed) {
        changed.living.iter().for_each(|fact| self.push(fact));
        changed.ended.iter().for_each(|fact| self.push_last(fact));
    }

    /// Takes a row, which replaces the row of the same thing.
    fn push(&mut self, fact: &Fact) {
        let Some(key) = key(fact) else { return };
        let rows = match self.ended.contains_key(&key) {
            true => &mut self.ended,
            false => &mut self.living,
        };
        rows.insert(key, fact.clone());
    }

    /// Takes the last row of a thing that has ended.
    fn push_last(&mut self, fact: &Fact) {
        if let Some(key) = key(fact) {
            self.living.remove(&key);
            self.ended.insert(key, fact.clone());
        }
    }

    /// Returns the rows that must be on disk beside those that were sealed before: the rows that are written again with the next
    /// change, and the rows that it seals and removes.
    pub(crate) fn take(&mut self) -> (Columns, Option<Columns>) {
        let sealed = (self.ended.len() >= SEALED).then(|| std::mem::take(&mut self.ended));
        let rows = self.columns(self.ended.values().chain(self.living.values()));
        (rows, sealed.map(|sealed| self.columns(sealed.values())))
    }

    fn columns<'a>(&self, rows: impl Iterator<Item = &'a Fact>) -> Columns {
        let mut columns = Columns::new(self.table);
        rows.for_each(|fact| columns.push(fact));
        columns
    }
}

/// Returns the key of a fact; `None` if the fact does not describe such a thing.
fn key(fact: &Fact) -> Option<Key> {
    match fact {
        Fact::Queue(queue) => Some((queue.queue, 0)),
        // Process ids are reused.
        Fact::Process(process) => Some((process.pid, process.first_ns)),
        Fact::Proxy(proxy) => Some((proxy.proxy, 0)),
        Fact::CodeObject(code_object) => Some((code_object.code_object, 0)),
        Fact::ApiStats(stats) => Some((stats.counter, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tracer_core::{sample, tables::Queue};

    use super::*;

    /// Ended things are removed soon after they were written, however many there were.
    #[test]
    fn memory_is_that_of_what_lives() {
        let mut snapshot = Snapshot::new(Table::Queues);
        let row = |queue| {
            Fact::Queue(Queue {
                queue,
                ..sample::queue(0)
            })
        };
        let mut sealed = 0;
        for number in 0..100_000 {
            snapshot.push(&row(number));
            // Every thousandth thing continues to live.
            if !number.is_multiple_of(1000) {
                snapshot.push_last(&row(number));
            }
            if number.is_multiple_of(100) {
                let (rows, taken) = snapshot.take();
                sealed += taken.map_or(0, |rows| rows.rows());
                assert!(rows.rows() <= SEALED + 200, "{}", rows.rows());
            }
        }
        assert_eq!((snapshot.living.len(), snapshot.ended.len() + sealed), (100, 99_900));
    }

    /// The recorder hands over each change once, and keeps only what lives.
    #[test]
    fn the_recorder_hands_over_what_changed() {
        let mut changes = Changes::default();
        let row = |queue, dispatches| {
            Fact::Queue(Queue {
                queue,
                dispatches,
                ..sample::queue(0)
            })
        };
        for number in 0..10 {
            assert!(changes.push(&row(number, 0)));
        }
        assert_eq!(changes.take().living.len(), 10);
        // Nothing has changed.
        assert!((0..10).all(|number| !changes.push(&row(number, 0))));
        assert!(changes.push(&row(3, 1)) && changes.push(&row(3, 2)));
        changes.push_last(&row(4, 0));
        changes.push(&row(5, 1));
        changes.push_last(&row(5, 2));
        let Changed { living, ended } = changes.take();
        assert_eq!((living, ended), (vec![row(3, 2)], vec![row(4, 0), row(5, 2)]));
        assert_eq!(changes.living.len(), 8);
        assert!(changes.take().living.is_empty());
    }
}
