//! Rows of an answer.

use polars::prelude::*;

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value: unknown, or not watched. Never 0.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Another number.
    Float(f64),
    /// Text. A value of another type has the form that the engine prints.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Rows of an answer, with its columns.
#[derive(Clone, Debug)]
pub struct Batch {
    frame: DataFrame,
}

impl Batch {
    pub(crate) const fn of(frame: DataFrame) -> Self {
        Self { frame }
    }

    /// Returns a batch without rows.
    pub(crate) fn empty(schema: &Schema) -> PolarsResult<Self> {
        let columns = schema.iter().map(|(name, kind)| Column::new_empty(name.clone(), kind));
        DataFrame::new(0, columns.collect()).map(Self::of)
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.frame.columns().iter().map(|column| column.name().as_str())
    }

    /// Returns whether the values of each column are numbers.
    pub fn are_numbers(&self) -> impl Iterator<Item = bool> {
        self.frame
            .columns()
            .iter()
            .map(|column| column.dtype().is_primitive_numeric())
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.frame.height()
    }

    /// Returns the cells of a row, from left to right.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell> {
        let columns = self.frame.columns().iter();
        columns.map(move |column| column.get(row).map_or(Cell::Null, |value| cell(&value)))
    }
}

fn cell(value: &AnyValue<'_>) -> Cell {
    match value {
        AnyValue::Null => Cell::Null,
        AnyValue::Boolean(value) => Cell::Bool(*value),
        AnyValue::String(text) => Cell::Text((*text).to_owned()),
        AnyValue::StringOwned(text) => Cell::Text(text.to_string()),
        AnyValue::Binary(bytes) => Cell::Bytes((*bytes).to_vec()),
        AnyValue::BinaryOwned(bytes) => Cell::Bytes(bytes.clone()),
        AnyValue::Float32(number) => Cell::Float(f64::from(*number)),
        AnyValue::Float64(number) => Cell::Float(*number),
        other => other
            .extract::<i128>()
            .filter(|_| other.is_integer())
            .map_or_else(|| Cell::Text(other.to_string()), Cell::Int),
    }
}
