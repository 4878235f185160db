//! Rows of one table that wait for the writer thread.

use std::time::Instant;

use tracer_core::tables::Table;

use crate::columns::Columns;
use crate::part::WINDOW;
use crate::sink::Job;
use crate::snapshot::Changes;

/// Rows of a full batch.
pub(crate) const BATCH: usize = WINDOW;

/// The number of a table's buffers that are kept to use again, beside the one that takes rows.
const SPARE: usize = 1;

/// Rows of one table that were not handed over yet.
pub(crate) struct Waiting {
    pub(crate) columns: Columns,
    spare: Vec<Columns>,
    /// The changed rows instead, if this is a table of things that continue to live.
    pub(crate) changes: Option<Changes>,
    /// Whether there are rows to hand over.
    pub(crate) dirty: bool,
    /// Whether there is no room for more rows.
    pub(crate) full: bool,
    /// Bytes that the rows take, at the last count.
    pub(crate) bytes: usize,
    /// Bytes of names since the last count.
    pub(crate) text: usize,
    /// A time before the oldest row was pushed.
    pub(crate) since: Option<Instant>,
}

impl Waiting {
    pub(crate) fn new(table: Table) -> Self {
        let changes = table.is_snapshot().then(Changes::default);
        Self {
            columns: Columns::new(table),
            spare: Vec::new(),
            changes,
            dirty: false,
            full: false,
            bytes: 0,
            text: 0,
            since: None,
        }
    }

    /// Takes the rows to hand over. They count as handed over from here on.
    pub(crate) fn take(&mut self) -> Option<Job> {
        if !self.dirty {
            return None;
        }
        self.dirty = false;
        self.bytes = 0;
        self.since = None;
        Some(match &mut self.changes {
            Some(changes) => Job::Update(self.columns.table(), changes.take()),
            None => {
                let fresh = self.spare.pop().unwrap_or_else(|| Columns::new(self.columns.table()));
                Job::Append(std::mem::replace(&mut self.columns, fresh))
            }
        })
    }

    /// Keeps a buffer to use again, unless a stall of the disk made it large.
    pub(crate) fn keep(&mut self, mut columns: Columns) {
        if self.spare.len() < SPARE && columns.rows() <= 2 * BATCH {
            columns.clear();
            self.spare.push(columns);
        }
    }
}
