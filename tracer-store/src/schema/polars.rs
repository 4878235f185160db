//! The schema as polars has it.

use polars::prelude::{DataType, Field, Schema};

use super::{Kind, Table};

/// Columns of a table.
pub(crate) fn polars_schema(table: Table) -> Schema {
    table
        .columns()
        .iter()
        .map(|column| Field::new(column.name.into(), polars_type(column.kind)))
        .collect()
}

/// Type of a column.
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
