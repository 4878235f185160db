//! The cells of one column.

use polars::prelude::*;
use polars_arrow::array::{Array, BinaryViewArrayGeneric, ViewType};
use tracer_core::tables::{Kind, Value};

use super::repeated::Repeated;
use super::texts::Texts;

/// Cells of one column. Numbers of every type are kept by their bits in 64, texts and bytes by their numbers among the column's texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    numbers: Repeated<u64>,
    /// Which cells have a value; empty for a column that is never null.
    valid: Repeated<bool>,
    texts: Texts,
}

impl Buffer {
    /// Pushes a cell; `nullable` is the schema's.
    pub(super) fn push(&mut self, value: Value<'_>, nullable: bool) {
        if nullable {
            self.valid.push(!matches!(value, Value::Missing));
        }
        match value {
            Value::Number(number) => self.numbers.push(number),
            Value::Bytes(bytes) => {
                let number = self.texts.number(bytes);
                self.numbers.push(number);
            }
            Value::Missing => self.numbers.push_last(),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether a cell is missing.
    pub(crate) fn is_missing(&self, row: usize) -> bool {
        self.valid.get(row) == Some(false)
    }

    /// Returns whether every cell has a value, or none has; `None` if some have.
    pub(crate) fn validity(&self) -> Option<bool> {
        if self.valid.len() == 0 {
            Some(true)
        } else {
            self.valid.only()
        }
    }

    /// Returns a cell as a number.
    pub(crate) fn number(&self, row: usize) -> Option<u64> {
        self.numbers.get(row)
    }

    /// Returns the number that all cells have, if there is only one.
    pub(crate) fn only_number(&self) -> Option<u64> {
        self.numbers.only()
    }

    pub(super) fn numbers(&self) -> impl ExactSizeIterator<Item = u64> {
        self.numbers.iter()
    }

    /// Returns a cell as bytes.
    pub(crate) fn bytes(&self, row: usize) -> Option<&[u8]> {
        self.text(self.number(row)?)
    }

    /// Returns the number of distinct texts.
    pub(crate) fn texts(&self) -> usize {
        self.texts.count()
    }

    /// Returns a text by its number, which [`Self::number`] returns for its cells.
    pub(crate) fn text(&self, number: u64) -> Option<&[u8]> {
        self.texts.get(usize::try_from(number).ok()?)
    }

    /// Returns the bytes of memory that the cells take.
    pub(super) fn size(&self) -> usize {
        self.numbers.bytes() + self.valid.bytes() + self.texts.bytes()
    }

    /// Appends the cells of a buffer of the same column.
    pub(super) fn append(&mut self, other: &Self) {
        self.valid.extend(other.valid.iter());
        if other.texts.count() == 0 {
            self.numbers.extend(other.numbers.iter());
            return;
        }
        let known = (0..other.texts.count()).map(|number| other.texts.get(number).unwrap_or_default());
        let known: Vec<u64> = known.map(|text| self.texts.number(text)).collect();
        let number = |number: u64| usize::try_from(number).ok().and_then(|at| known.get(at).copied());
        // A missing cell may have a number of no text.
        self.numbers
            .extend(other.numbers.iter().map(|other| number(other).unwrap_or_default()));
    }

    /// Moves the cells into the order of these rows.
    pub(super) fn reorder(&mut self, rows: &[usize]) {
        self.numbers.reorder(rows);
        self.valid.reorder(rows);
    }

    /// Removes the cells, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.valid.clear();
        self.texts.clear();
    }

    /// Takes the cells of a series; `nullable` is the schema's.
    pub(super) fn fill(&mut self, series: &Series, kind: Kind, nullable: bool) -> PolarsResult<()> {
        if series.null_count() == series.len() {
            self.miss(series.len(), nullable);
            return Ok(());
        }
        match kind {
            Kind::U32 => self.fill_numbers(series.u32()?, nullable, u64::from),
            Kind::U64 => self.fill_numbers(series.u64()?, nullable, |number| number),
            Kind::I32 => self.fill_numbers(series.i32()?, nullable, |number| i64::from(number).cast_unsigned()),
            Kind::I64 => self.fill_numbers(series.i64()?, nullable, i64::cast_unsigned),
            Kind::Bool => series.bool()?.iter().for_each(|cell| {
                let number = cell.map(|cell| Value::Number(u64::from(cell)));
                self.push(number.unwrap_or(Value::Missing), nullable);
            }),
            Kind::Text => series
                .str()?
                .downcast_iter()
                .for_each(|cells| self.fill_texts(cells, nullable)),
            Kind::Bytes => series
                .binary()?
                .downcast_iter()
                .for_each(|cells| self.fill_texts(cells, nullable)),
        }
        Ok(())
    }

    /// Takes this many missing cells.
    pub(super) fn miss(&mut self, cells: usize, nullable: bool) {
        self.numbers.extend_by(0, cells);
        self.valid.extend_by(false, if nullable { cells } else { 0 });
    }

    /// Takes the cells of a column of texts or bytes. Equal views are equal texts: of the same cells, only the first one is looked at.
    fn fill_texts<T: ViewType + ?Sized>(&mut self, cells: &BinaryViewArrayGeneric<T>, nullable: bool) {
        let mut last = None;
        for (row, view) in cells.views().iter().enumerate() {
            if cells.is_null(row) {
                self.push(Value::Missing, nullable);
                continue;
            }
            let view = view.as_u128();
            let number = match last {
                Some((known, number)) if known == view => number,
                _ => self.texts.number(cells.value(row).to_bytes()),
            };
            last = Some((view, number));
            self.numbers.push(number);
            if nullable {
                self.valid.push(true);
            }
        }
    }

    /// Takes the cells of a column of numbers, all at once where none is missing.
    fn fill_numbers<T: PolarsNumericType>(
        &mut self,
        cells: &ChunkedArray<T>,
        nullable: bool,
        bits: impl Fn(T::Native) -> u64,
    ) {
        for array in cells.downcast_iter() {
            let len = if nullable { array.len() } else { 0 };
            self.numbers.extend(array.values().iter().map(|&number| bits(number)));
            match array.validity().filter(|valid| valid.unset_bits() > 0) {
                None => self.valid.extend_by(true, len),
                Some(valid) => self.valid.extend(valid.iter().take(len)),
            }
        }
    }
}
