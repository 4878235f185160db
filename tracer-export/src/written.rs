//! What an export has, and what it lacks.

use std::collections::BTreeMap;

use tracer_core::tables::Table;

/// What an export has, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows that the export has, by table.
    pub rows: BTreeMap<Table, u64>,
    /// Rows that the format has no place for, by table, with the reason.
    pub left_out: BTreeMap<Table, (u64, &'static str)>,
    /// Dispatches that the export has without a time of the GPU, because none is known; `None` if the format has rows as they are.
    pub without_gpu_time: Option<u64>,
    /// Dispatches whose stack was not taken; `None` if the format has no stacks.
    pub without_stack: Option<u64>,
    /// Calls whose end the trace does not have: the export ends them at its own end, and marks them.
    pub unfinished: u64,
}

impl Written {
    pub(crate) fn count(&mut self, table: Table) {
        *self.rows.entry(table).or_default() += 1;
    }

    pub(crate) fn leave_out(&mut self, table: Table, reason: &'static str) {
        self.left_out.entry(table).or_insert((0, reason)).0 += 1;
    }
}
