//! Rows in columns: the buffers that facts are pushed into, and their conversion to and from polars.

use std::iter;

use polars::prelude::*;
use tracer_core::tables::{Column, Fact, Kind, Misfit, Source, Table, Target, Value};

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

/// Cells of one column. Numbers of every type are stored by their bits in 64, bytes in one heap with their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Numbers; for strings and bytes, the ends in `heap`.
    numbers: Vec<u64>,
    heap: Vec<u8>,
    /// Which cells have a value; empty for a column that is never null.
    valid: Vec<bool>,
}

impl Buffer {
    /// Pushes a cell; `nullable` is the schema's.
    fn push(&mut self, value: Value<'_>, nullable: bool) {
        if nullable {
            self.valid.push(!matches!(value, Value::Missing));
        }
        if let Value::Bytes(bytes) = value {
            self.heap.extend_from_slice(bytes);
        }
        self.numbers.push(match value {
            Value::Number(number) => number,
            // The end in the heap. It is a valid placeholder of a missing cell, for numbers and for bytes.
            Value::Bytes(_) | Value::Missing => self.heap.len() as u64,
        });
    }

    /// Makes room for this many cells.
    fn reserve(&mut self, cells: usize, nullable: bool) {
        self.numbers.reserve(cells);
        self.valid.reserve(if nullable { cells } else { 0 });
    }

    fn is_missing(&self, row: usize) -> bool {
        self.valid.get(row) == Some(&false)
    }

    fn number(&self, row: usize) -> Option<u64> {
        self.numbers.get(row).copied()
    }

    fn bytes(&self, row: usize) -> Option<&[u8]> {
        let begin = if row == 0 { 0 } else { self.number(row - 1)? };
        self.heap
            .get(usize::try_from(begin).ok()?..usize::try_from(self.number(row)?).ok()?)
    }

    fn size(&self) -> usize {
        size_of_val(&*self.numbers) + self.heap.len() + self.valid.len()
    }

    fn append(&mut self, other: &Self) {
        // The ends move by the bytes in the heap, which are none for numbers.
        let begin = self.heap.len() as u64;
        self.numbers.extend(other.numbers.iter().map(|number| number + begin));
        self.heap.extend_from_slice(&other.heap);
        self.valid.extend_from_slice(&other.valid);
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.heap.clear();
        self.valid.clear();
    }

    /// Returns the cells of a column of numbers.
    fn numeric<T: PolarsNumericType>(&self, name: PlSmallStr, of: impl Fn(u64) -> T::Native) -> Series
    where
        ChunkedArray<T>: IntoSeries,
    {
        let numbers = self.numbers.iter().map(|&bits| of(bits));
        if self.valid.is_empty() {
            ChunkedArray::<T>::from_iter_values(name, numbers).into_series()
        } else {
            let cells = numbers.zip(&self.valid).map(|(number, &valid)| valid.then_some(number));
            ChunkedArray::<T>::from_iter_options(name, cells).into_series()
        }
    }

    /// Returns cells that are bytes; `None` where missing.
    fn slices(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.numbers.len()).map(|row| if self.is_missing(row) { None } else { self.bytes(row) })
    }

    /// Returns the cells in the column's type, from which their bits were widened.
    fn series(&self, name: &'static str, kind: Kind) -> Series {
        let name = PlSmallStr::from_static(name);
        match kind {
            Kind::U32 => self.numeric::<UInt32Type>(name, |bits| bits as u32),
            Kind::U64 => self.numeric::<UInt64Type>(name, |bits| bits),
            Kind::I32 => self.numeric::<Int32Type>(name, |bits| bits as i32),
            Kind::I64 => self.numeric::<Int64Type>(name, u64::cast_signed),
            Kind::Bool => {
                let cells = self.numbers.iter().enumerate();
                let cells = cells.map(|(row, &bits)| (!self.is_missing(row)).then_some(bits != 0));
                BooleanChunked::from_iter_options(name, cells).into_series()
            }
            Kind::Text => StringChunked::from_iter_options(name, self.slices().map(|cell| str::from_utf8(cell?).ok()))
                .into_series(),
            Kind::Bytes => BinaryChunked::from_iter_options(name, self.slices()).into_series(),
        }
    }

    /// Takes the cells of a series; `nullable` is the schema's.
    fn fill(&mut self, series: &Series, kind: Kind, nullable: bool) -> PolarsResult<()> {
        if series.null_count() == series.len() {
            self.miss(series.len(), nullable);
            return Ok(());
        }
        let mut push = |cell: Option<Value<'_>>| self.push(cell.unwrap_or(Value::Missing), nullable);
        match kind {
            Kind::U32 => self.fill_numbers(series.u32()?, nullable, u64::from),
            Kind::U64 => self.fill_numbers(series.u64()?, nullable, |number| number),
            Kind::I32 => self.fill_numbers(series.i32()?, nullable, |number| i64::from(number).cast_unsigned()),
            Kind::I64 => self.fill_numbers(series.i64()?, nullable, i64::cast_unsigned),
            Kind::Bool => series
                .bool()?
                .iter()
                .for_each(|cell| push(cell.map(|cell| Value::Number(u64::from(cell))))),
            Kind::Text => series
                .str()?
                .iter()
                .for_each(|cell| push(cell.map(|text| Value::Bytes(text.as_bytes())))),
            Kind::Bytes => series.binary()?.iter().for_each(|cell| push(cell.map(Value::Bytes))),
        }
        Ok(())
    }

    /// Takes this many missing cells.
    fn miss(&mut self, cells: usize, nullable: bool) {
        let end = self.heap.len() as u64;
        self.numbers.extend(iter::repeat_n(end, cells));
        self.valid
            .extend(iter::repeat_n(false, if nullable { cells } else { 0 }));
    }

    /// Takes the cells of a column of numbers, all at once where none is missing.
    fn fill_numbers<T: PolarsNumericType>(
        &mut self,
        cells: &ChunkedArray<T>,
        nullable: bool,
        bits: impl Fn(T::Native) -> u64,
    ) {
        for array in cells.downcast_iter() {
            let numbers = array.values().iter().map(|&number| bits(number));
            match array.validity().filter(|valid| valid.unset_bits() > 0) {
                None => {
                    self.numbers.extend(numbers);
                    self.valid
                        .extend(iter::repeat_n(true, if nullable { array.len() } else { 0 }));
                }
                Some(valid) => {
                    let missing = self.heap.len() as u64;
                    let cells = numbers.zip(valid.iter());
                    self.numbers
                        .extend(cells.map(|(number, valid)| if valid { number } else { missing }));
                    self.valid
                        .extend(valid.iter().take(if nullable { array.len() } else { 0 }));
                }
            }
        }
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

/// The cells of one row in buffers.
struct Row<I> {
    cells: I,
    row: usize,
}

impl<'a, I: Iterator<Item = (usize, (&'a Column, &'a Buffer))>> Source for Row<I> {
    fn cell<T>(&mut self, read: impl FnOnce(Value<'_>) -> Option<T>) -> Result<T, Misfit> {
        let Some((column, (Column { kind, .. }, buffer))) = self.cells.next() else {
            return Err(Misfit { column: usize::MAX });
        };
        let value = match kind {
            _ if buffer.is_missing(self.row) => Some(Value::Missing),
            Kind::Text | Kind::Bytes => buffer.bytes(self.row).map(Value::Bytes),
            _ => buffer.number(self.row).map(Value::Number),
        };
        value.and_then(read).ok_or(Misfit { column })
    }
}

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            Some(counts) if self.table.is_of_runs() => counts.numbers.iter().fold(0, |sum, &n| sum.saturating_add(n)),
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
            cells: self.table.columns().iter().zip(&self.buffers).enumerate(),
            row,
        })
    }

    /// Returns the time of a row.
    pub(crate) fn time(&self, row: usize) -> Option<u64> {
        self.times().get(row).copied()
    }

    /// Returns the time of the earliest row.
    pub(crate) fn first_time(&self) -> Option<u64> {
        self.times().iter().copied().min()
    }

    fn times(&self) -> &[u64] {
        &self.buffers[self.time].numbers
    }

    /// Returns the rows in the order of their times; rows with equal times in the order of [`Self::push`].
    pub(crate) fn to_frame(&self) -> PolarsResult<DataFrame> {
        let cells = self.table.columns().iter().zip(&self.buffers);
        let series = cells
            .map(|(column, buffer)| buffer.series(column.name, column.kind).into_column())
            .collect();
        let frame = DataFrame::new(self.rows, series)?;
        if self.times().is_sorted() {
            return Ok(frame);
        }
        let options = SortMultipleOptions::default()
            .with_maintain_order(true)
            .with_multithreaded(false);
        frame.sort([self.table.time_column()], options)
    }

    /// Replaces the rows by those of a frame, whose columns have the types of the table; a nullable column can be absent. Keeps the
    /// memory.
    pub(crate) fn read(&mut self, frame: &DataFrame) -> Result<(), String> {
        self.clear();
        let rows = frame.height();
        for (column, buffer) in self.table.columns().iter().zip(&mut self.buffers) {
            buffer.reserve(rows, column.nullable);
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
