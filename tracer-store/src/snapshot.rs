//! Rows about what goes on living: the last one of each thing counts.
//!
//! Queues, proxies, processes, code objects and counters are facts at the ends of their lives, but a recorder can be killed before. So it may push a
//! row of one at any time, as it is then, and again later. Such a table is kept here, and each time that it
//! changed it is written whole, as one part in the place of the one before: on disk there is one row a thing.
//!
//! What has ended does not change any more. Once there are [`SEALED`] such rows they become a part of their own, which
//! nothing replaces, and are forgotten: memory and what is written grow with what lives, not with what ever did.

use std::collections::BTreeMap;

use tracer_core::fact::Fact;

use crate::columns::Columns;
use crate::schema::Table;

/// Rows of things that ended which become a part of their own.
pub(crate) const SEALED: usize = 4096;

/// What tells things of one table apart.
type Key = (u32, u64);

/// The rows of a table that are not sealed.
pub(crate) struct Snapshot {
    table: Table,
    /// Of what may go on living.
    living: BTreeMap<Key, Fact>,
    /// The last rows of what has ended.
    ended: BTreeMap<Key, Fact>,
}

/// What is to be written.
pub(crate) struct Taken {
    /// Rows that are written again with the next change.
    pub rows: Columns,
    /// Rows that are not.
    pub sealed: Option<Columns>,
}

impl Snapshot {
    pub(crate) const fn new(table: Table) -> Self {
        Self {
            table,
            living: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Takes a row in the place of the one of the same thing. Returns whether that changes the table.
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

    /// The same; the thing has ended, and no other row of it comes.
    pub(crate) fn push_last(&mut self, fact: &Fact) -> bool {
        let changes = self.push(fact);
        if let Some((key, row)) = key(fact).and_then(|key| self.living.remove_entry(&key)) {
            self.ended.insert(key, row);
            // It can be sealed, though it says nothing new.
            return true;
        }
        changes
    }

    /// What has to be on disk beside what was sealed before. What is sealed now is forgotten.
    pub(crate) fn take(&mut self) -> Taken {
        let sealed = (self.ended.len() >= SEALED).then(|| std::mem::take(&mut self.ended));
        Taken {
            rows: self.columns(self.ended.values().chain(self.living.values())),
            sealed: sealed.map(|rows| self.columns(rows.values())),
        }
    }

    fn columns<'a>(&self, rows: impl Iterator<Item = &'a Fact>) -> Columns {
        let mut columns = Columns::new(self.table);
        rows.for_each(|fact| columns.push(fact));
        columns
    }
}

/// `None` if the fact is none of such a thing.
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
    use tracer_core::{fact::Queue, sample};

    use super::*;

    /// What has ended is forgotten soon after it was written, however much there was.
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
            // Every thousandth goes on living.
            if !number.is_multiple_of(1000) {
                snapshot.push_last(&row(number));
            }
            if number.is_multiple_of(100) {
                let taken = snapshot.take();
                sealed += taken.sealed.map_or(0, |rows| rows.rows());
                assert!(taken.rows.rows() <= SEALED + 200, "{}", taken.rows.rows());
            }
        }
        assert_eq!((snapshot.living.len(), snapshot.ended.len() + sealed), (100, 99_900));
    }
}
