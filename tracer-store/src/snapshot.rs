//! Rows of things that continue to live: the last row of each thing counts.
//!
//! Queues, proxies, processes, code objects and counters become facts when they end, but a recorder can be killed before that. So
//! it may push a row of one at any time, with its present state, and push it again later. Such a table is kept here. After each
//! change it is written whole, as one part that replaces the previous one: on disk there is one row per thing.
//!
//! A thing that has ended does not change any more. After [`SEALED`] such rows, they become a part of their own, which is never
//! replaced, and are removed from memory. So memory and writes grow with the things that live, not with all things that ever lived.

use std::collections::BTreeMap;

use tracer_core::tables::{Fact, Table};

use crate::columns::Columns;

/// The number of rows of ended things that become a part of their own.
pub(crate) const SEALED: usize = 4096;

/// The key that distinguishes things of one table.
type Key = (u32, u64);

/// The rows of a table that are not sealed.
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

    /// Takes a row, which replaces the row of the same thing. Returns whether that changes the table.
    pub(crate) fn push(&mut self, fact: &Fact) -> bool {
        let Some(key) = key(fact) else { return false };
        let rows = match self.ended.contains_key(&key) {
            true => &mut self.ended,
            false => &mut self.living,
        };
        let changes = rows.get(&key) != Some(fact);
        if changes {
            rows.insert(key, fact.clone());
        }
        changes
    }

    /// Takes the last row of a thing that has ended. Returns whether that changes the table.
    pub(crate) fn push_last(&mut self, fact: &Fact) -> bool {
        let changes = self.push(fact);
        if let Some((key, row)) = key(fact).and_then(|key| self.living.remove_entry(&key)) {
            self.ended.insert(key, row);
            // The row can be sealed now, even if it is unchanged.
            return true;
        }
        changes
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
}
