//! The tables of a trace. One declaration per table has the struct of its rows, its columns, their units and their meanings.
//!
//! A row is a conclusion of the model, with its evidence: a [`Fact`]. The doc comments of a table and of its fields are also the
//! text of docs/events.md, so they use the words of a trace: `null` is `None`, and a field of several values is several columns.
//!
//! A new column may be added at any time if it is nullable: parts of older traces read as null there, and older tools ignore it.
//! Any other change is a new format version.

mod api_calls;
mod api_stats;
mod cells;
mod code_objects;
mod copies;
mod dispatches;
mod doorbells;
mod driver;
mod gpu_times;
mod ioctls;
mod libraries;
mod list;
mod losses;
mod packets;
mod processes;
mod progress;
mod proxies;
mod queues;
mod record;
mod ring_jobs;
mod runs;
mod stacks;

pub use api_calls::ApiCall;
pub use api_stats::{ApiStats, Durations};
pub use cells::{Misfit, Source, Target, Value};
pub use code_objects::{CodeObject, Kernel};
pub use copies::{CopiedBy, Copy, CopyOp, Direction};
pub use dispatches::{Dispatch, Evidence, Form, Path};
pub use doorbells::Doorbell;
pub use driver::{DriverCall, DriverEvent};
pub use gpu_times::GpuTime;
pub use ioctls::Ioctl;
pub use libraries::Library;
pub use list::{Fact, Table};
pub use losses::Loss;
pub use packets::{OtherPacket, PacketKind, Unread};
pub use processes::Process;
pub use progress::Progress;
pub use proxies::{Proxy, Request};
pub use queues::{Queue, QueueOrigin, RingMemory};
pub use record::{Datum, Record};
pub use ring_jobs::RingJob;
pub use runs::{DispatchRun, DoorbellRun};
pub use stacks::Stack;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, also in queries.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Whether values can be missing.
    pub nullable: bool,
    /// The unit of its numbers; empty if the column is not a quantity.
    pub unit: &'static str,
    /// The meaning of its values.
    pub meaning: &'static str,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
pub enum Kind {
    /// Unsigned, 32 bits.
    #[strum(serialize = "uint32")]
    U32,
    /// Unsigned, 64 bits.
    #[strum(serialize = "uint64")]
    U64,
    /// Signed, 32 bits.
    #[strum(serialize = "int32")]
    I32,
    /// Signed, 64 bits.
    #[strum(serialize = "int64")]
    I64,
    /// True or false.
    #[strum(serialize = "boolean")]
    Bool,
    /// UTF-8.
    #[strum(serialize = "string")]
    Text,
    /// Bytes.
    #[strum(serialize = "binary")]
    Bytes,
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Each row is one thing that happened.
    Events,
    /// Each row is a thing that continues to live. It can be written again, and the last row counts.
    Snapshots,
    /// Each row represents several things: the number in the column `count`.
    Runs,
}

/// The struct of a table's rows. [`table!`] implements it.
pub(crate) trait Row: Sized {
    /// Name of the table.
    const NAME: &'static str;
    /// A description of the rows.
    const MEANING: &'static str;
    /// The column that orders the table.
    const TIME: &'static str;
    /// What the rows are.
    const ROWS: Rows;

    fn columns() -> Vec<Column>;
    fn put(&self, to: &mut impl Target);
    fn get(from: &mut impl Source) -> Result<Self, Misfit>;
}

/// Declares the struct of a table's rows: the table's name, the column that orders it, what its rows are, and its fields. After a
/// field's type come the unit, and the names of its columns if it has several.
macro_rules! table {
    (
        $(#[doc = $meaning:literal])+
        $(#[derive($($derive:ident),+)])?
        pub struct $row:ident: $name:literal by $time:ident, $rows:ident {
            $($(#[doc = $doc:literal])+ pub $field:ident: $type:ty $(=> $unit:literal $([$($column:literal),+])?)?,)+
        }
    ) => {
        $(#[doc = $meaning])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $(#[derive($($derive),+)])?
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl crate::tables::Row for $row {
            const NAME: &'static str = $name;
            const MEANING: &'static str = concat!($($meaning),+).trim_ascii_start();
            const TIME: &'static str = stringify!($time);
            const ROWS: crate::tables::Rows = crate::tables::Rows::$rows;

            fn columns() -> Vec<crate::tables::Column> {
                let mut columns = Vec::new();
                $(crate::tables::cells::describe(
                    &mut columns,
                    |row: &Self| &row.$field,
                    crate::tables::names!($field $($($($column)+)?)?),
                    concat!($($unit)?),
                    concat!($($doc),+).trim_ascii_start(),
                );)+
                columns
            }

            fn put(&self, to: &mut impl crate::tables::Target) {
                $(crate::tables::cells::Field::put(&self.$field, to);)+
            }

            fn get(from: &mut impl crate::tables::Source) -> Result<Self, crate::tables::Misfit> {
                Ok(Self { $($field: crate::tables::cells::Field::get(from)?,)+ })
            }
        }
    };
}

/// Names the columns of a field.
macro_rules! names {
    ($field:ident) => {
        &[stringify!($field)]
    };
    ($field:ident $($name:literal)+) => {
        &[$($name),+]
    };
}

use {names, table};

#[cfg(test)]
mod tests;
