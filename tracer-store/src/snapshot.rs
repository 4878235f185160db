//! Rows about what goes on living: the last one of each thing counts.
//!
//! Queues, proxies, processes, code objects and counters are facts at the ends of their lives, but a recorder can be killed before. So it may push a
//! row of one at any time, as it is then, and again later. Such a table is kept here whole, and each time that it
//! changed it is written whole, as one part in the place of the one before: on disk there is one row a thing.

use std::collections::BTreeMap;

use tracer_core::fact::Fact;

use crate::columns::Columns;
use crate::schema::Table;

/// What tells things of one table apart.
type Key = (u32, u64);

/// The rows of a table.
pub(crate) struct Snapshot {
    table: Table,
    rows: BTreeMap<Key, Fact>,
}

impl Snapshot {
    pub(crate) const fn new(table: Table) -> Self {
        Self {
            table,
            rows: BTreeMap::new(),
        }
    }

    /// Takes a row in the place of the one of the same thing. Returns whether that changes the table.
    pub(crate) fn push(&mut self, fact: &Fact) -> bool {
        let key = match fact {
            Fact::Queue(queue) => (queue.queue, 0),
            // Process ids are reused.
            Fact::Process(process) => (process.pid, process.first_ns),
            Fact::Proxy(proxy) => (proxy.proxy, 0),
            Fact::CodeObject(code_object) => (code_object.code_object, 0),
            Fact::ApiStats(stats) => (stats.counter, 0),
            _ => return false,
        };
        let changes = self.rows.get(&key) != Some(fact);
        if changes {
            self.rows.insert(key, fact.clone());
        }
        changes
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The whole table.
    pub(crate) fn columns(&self) -> Columns {
        let mut columns = Columns::new(self.table);
        self.rows.values().for_each(|fact| columns.push(fact));
        columns
    }
}
