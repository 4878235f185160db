//! Tables as polars frames, for queries.

use polars::prelude::{DataFrame, PolarsError};
use tracer_core::tables::Table;

use crate::columns::Columns;
use crate::error::{Damage, StoreError};
use crate::part::{Part, Parts, WINDOW};
use crate::reader::Trace;

/// A table to query.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The rows, which are not in the order of time if parts overlap.
    pub frame: DataFrame,
    /// Parts with rows that are missing from the frame.
    pub damaged: Vec<Damage>,
}

impl Trace {
    /// Reads a whole table into memory, with the columns of [`Table::columns`], whatever version wrote it. Parts that cannot be
    /// read are left out, and reported.
    ///
    /// # Errors
    /// If the table's folder cannot be read.
    pub fn frame(&self, table: Table) -> Result<Frame, StoreError> {
        let failed = |error: PolarsError| StoreError::Table {
            action: "query",
            path: self.dir().join(table.name()),
            reason: error.to_string(),
        };
        let Parts { readable, mut damaged } = self.parts(&[table])?;
        let mut frame = Columns::new(table).to_frame().map_err(failed)?;
        let mut append = |part: &Part| -> Result<(), StoreError> {
            let content = part.load().map_err(StoreError::Damaged)?;
            for offset in (0..part.rows).step_by(WINDOW) {
                let rows = part.read(&content, offset).map_err(StoreError::Damaged)?;
                frame.vstack_mut(&rows.to_frame().map_err(failed)?).map_err(failed)?;
            }
            Ok(())
        };
        for part in &readable {
            match append(part) {
                Err(StoreError::Damaged(damage)) => damaged.push(damage),
                appended => appended?,
            }
        }
        Ok(Frame { frame, damaged })
    }
}
