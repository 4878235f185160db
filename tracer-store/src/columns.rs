//! Rows in columns: the buffers that facts are pushed into, and their conversion to and from polars.

mod buffer;
pub(crate) mod encode;
mod repeated;
mod texts;

use std::slice;

use polars::prelude::*;
use tracer_core::tables::{Column, Fact, Kind, Misfit, Source, Table, Target, Value};

use buffer::Buffer;

/// Returns the type of a column in Parquet.
pub(crate) const fn polars_type(kind: Kind) -> DataType {
    match kind {
        Kind::U32 => DataType::UInt32,
        Kind::U64 => DataType::UInt64,
        Kind::I32 => DataType::Int32,
        Kind::I64 => DataType::Int64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::String,
        Kind::Bytes => DataType::Binary,
    }
}

/// Columns and their buffers, which take the cells of one row.
struct Cells<I>(I);

impl<'a, I: Iterator<Item = (&'a Column, &'a mut Buffer)>> Target for Cells<I> {
    fn put(&mut self, value: Value<'_>) {
        if let Some((column, buffer)) = self.0.next() {
            buffer.push(value, column.nullable);
        }
    }
}

/// The cells of one row that were not read yet.
struct Row<'a> {
    cells: slice::Iter<'a, Buffer>,
    row: usize,
    /// Columns of the table.
    columns: usize,
}

impl Row<'_> {
    /// The last cell that was read has a value that its field does not allow.
    #[cold]
    fn misfit(&self) -> Misfit {
        let read = self.columns.saturating_sub(self.cells.len());
        Misfit {
            column: read.saturating_sub(1),
        }
    }
}

impl Source for Row<'_> {
    // Most of a report's time is here: inlined, the kind is known.
    #[inline]
    fn cell<T>(&mut self, kind: Kind, read: impl FnOnce(Value<'_>) -> Option<T>) -> Result<T, Misfit> {
        let Some(buffer) = self.cells.next() else {
            return Err(Misfit { column: usize::MAX });
        };
        let value = match kind {
            _ if buffer.is_missing(self.row) => Some(Value::Missing),
            Kind::Text | Kind::Bytes => buffer.bytes(self.row).map(Value::Bytes),
            _ => buffer.number(self.row).map(Value::Number),
        };
        value.and_then(read).ok_or_else(|| self.misfit())
    }
}

/// Rows of one table.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    table: Table,
    /// Position of the column of times, which is asked for each row.
    time: usize,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl Columns {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            time: table.time_index(),
            buffers: vec![Buffer::default(); table.columns().len()],
            rows: 0,
        }
    }

    pub(crate) const fn table(&self) -> Table {
        self.table
    }

    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Counts the things that the rows represent: one each, except for runs.
    pub(crate) fn things(&self) -> u64 {
        let count = self.table.columns().iter().position(|column| column.name == "count");
        match count.and_then(|at| self.buffers.get(at)) {
            Some(counts) if self.table.is_of_runs() => counts.numbers().fold(0, u64::saturating_add),
            _ => self.rows as u64,
        }
    }

    /// Returns the bytes of memory that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::size).sum()
    }

    /// Appends a fact, which must be a row of this table.
    pub(crate) fn push(&mut self, fact: &Fact) {
        let cells = self.table.columns().iter().zip(&mut self.buffers);
        fact.put(&mut Cells(cells));
        self.rows += 1;
    }

    /// Appends rows of the same table.
    pub(crate) fn append(&mut self, other: &Self) {
        for (buffer, other) in self.buffers.iter_mut().zip(&other.buffers) {
            buffer.append(other);
        }
        self.rows += other.rows;
    }

    /// Removes the rows and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.buffers.iter_mut().for_each(Buffer::clear);
        self.rows = 0;
    }

    /// Returns a row.
    pub(crate) fn get(&self, row: usize) -> Result<Fact, Misfit> {
        self.table.get(&mut Row {
            cells: self.buffers.iter(),
            row,
            columns: self.buffers.len(),
        })
    }

    /// Returns the time of a row.
    pub(crate) fn time(&self, row: usize) -> Option<u64> {
        self.buffers.get(self.time)?.number(row)
    }

    fn times(&self) -> impl ExactSizeIterator<Item = u64> {
        self.buffers[self.time].numbers()
    }

    /// Brings the rows into the order of their times; rows with equal times stay in the order of [`Self::push`].
    pub(crate) fn sort(&mut self) {
        if self.times().is_sorted() {
            return;
        }
        let mut rows: Vec<(u64, usize)> = self.times().zip(0..).collect();
        rows.sort();
        let rows: Vec<usize> = rows.into_iter().map(|(_, row)| row).collect();
        self.buffers.iter_mut().for_each(|buffer| buffer.reorder(&rows));
    }

    /// Returns the rows as a frame.
    pub(crate) fn to_frame(&self) -> PolarsResult<DataFrame> {
        let cells = self.table.columns().iter().zip(&self.buffers);
        let series = cells.map(|(column, buffer)| {
            let array = encode::plain(buffer, column.kind)?;
            Ok(Series::try_from((PlSmallStr::from_static(column.name), array))?.into_column())
        });
        DataFrame::new(self.rows, series.collect::<PolarsResult<_>>()?)
    }

    /// Replaces the rows by those of a frame, whose columns have the types of the table; a nullable column can be absent. Keeps the
    /// memory.
    pub(crate) fn read(&mut self, frame: &DataFrame) -> Result<(), String> {
        self.clear();
        let rows = frame.height();
        for (column, buffer) in self.table.columns().iter().zip(&mut self.buffers) {
            match frame.column(column.name) {
                Ok(cells) if !column.nullable && cells.null_count() > 0 => {
                    return Err(format!("column `{}` has missing values", column.name));
                }
                Ok(cells) => buffer
                    .fill(cells.as_materialized_series(), column.kind, column.nullable)
                    .map_err(|error| error.to_string())?,
                Err(_) => buffer.miss(rows, true),
            }
        }
        self.rows = rows;
        Ok(())
    }
}
