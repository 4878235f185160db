//! Tables as polars frames, and as open files, for queries.

use std::fs::File;

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

/// The parts of a table as open files, for an engine that reads Parquet by itself.
#[derive(Debug)]
pub struct Files {
    /// The parts that count. They have the columns of [`Table::columns`], and may lack columns that can be null, or have more.
    pub files: Vec<File>,
    /// Rows of these parts.
    pub rows: u64,
    /// Parts that are left out.
    pub damaged: Vec<Damage>,
}

impl Trace {
    /// Opens the parts of a table. Their checksums were right when they were opened.
    ///
    /// # Errors
    /// If the table's folder cannot be read.
    pub fn files(&self, table: Table) -> Result<Files, StoreError> {
        let Parts { readable, mut damaged } = self.parts(&[table])?;
        let (mut files, mut rows) = (Vec::with_capacity(readable.len()), 0);
        for part in &readable {
            match part.file() {
                Ok(file) => {
                    files.push(file);
                    rows += part.rows as u64;
                }
                Err(damage) => damaged.push(damage),
            }
        }
        Ok(Files { files, rows, damaged })
    }

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
        let mut rows = Columns::new(table);
        let mut frame = rows.to_frame().map_err(failed)?;
        let mut append = |part: &Part| -> Result<(), StoreError> {
            let content = part.load().map_err(StoreError::Damaged)?;
            for offset in (0..part.rows).step_by(WINDOW) {
                part.read(&content, offset, &mut rows).map_err(StoreError::Damaged)?;
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
