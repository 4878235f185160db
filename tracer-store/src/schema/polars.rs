//! The column types of polars.

use polars::prelude::DataType;

use super::Kind;

/// Returns the type of a column.
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
