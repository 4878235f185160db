//! The contents of the tables: the single description of every column, which writer, reader and docs share.
//!
//! A new column may be added at any time if it is nullable: parts of older traces read as null there, and older tools ignore it.
//! Any other change is a new format version.

mod docs;
mod field;
mod polars;
mod rows;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use tracer_core::fact::Fact;

pub(crate) use self::polars::polars_type;
pub use docs::schema_markdown;
pub(crate) use field::Misfit;
pub(crate) use rows::{get, put};

/// A table of the trace: one folder of Parquet parts.
///
/// The order is the one in which facts of the same time are read. The row of a process or a queue comes before the rows of its
/// events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Traced processes.
    Processes,
    /// User queues.
    Queues,
    /// Samples of queues' indexes.
    Progress,
    /// Ioctls on KFD and DRM devices.
    Ioctls,
    /// Stores to AQL doorbells.
    Doorbells,
    /// Doorbells without rows of their own.
    DoorbellRuns,
    /// Kernel dispatch packets.
    Dispatches,
    /// Dispatches without rows of their own.
    DispatchRuns,
    /// Times when dispatches ran, by the GPU's clock.
    GpuTimes,
    /// Tools' proxies in front of queues.
    Proxies,
    /// Kernel dispatches that programs submitted to proxies.
    Requests,
    /// Packets other than kernel dispatches.
    Packets,
    /// Code objects in processes.
    CodeObjects,
    /// Kernels of code objects.
    Kernels,
    /// SDMA submissions.
    Copies,
    /// Jobs on rings of the kernel driver.
    RingJobs,
    /// Calls of kernel driver functions.
    DriverCalls,
    /// Trace events of the kernel driver.
    DriverEvents,
    /// Calls of HIP and HSA functions.
    ApiCalls,
    /// Calls of HIP and HSA functions that were only counted.
    ApiStats,
    /// Events that sources lost.
    Losses,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 21] = [
        Self::Processes,
        Self::Queues,
        Self::Progress,
        Self::Ioctls,
        Self::Doorbells,
        Self::DoorbellRuns,
        Self::Dispatches,
        Self::DispatchRuns,
        Self::GpuTimes,
        Self::Proxies,
        Self::Requests,
        Self::Packets,
        Self::CodeObjects,
        Self::Kernels,
        Self::Copies,
        Self::RingJobs,
        Self::DriverCalls,
        Self::DriverEvents,
        Self::ApiCalls,
        Self::ApiStats,
        Self::Losses,
    ];

    /// Returns the name, used in queries, in the manifest and for the folder.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Queues => "queues",
            Self::Progress => "progress",
            Self::Ioctls => "ioctls",
            Self::Doorbells => "doorbells",
            Self::DoorbellRuns => "doorbell_runs",
            Self::Dispatches => "dispatches",
            Self::DispatchRuns => "dispatch_runs",
            Self::GpuTimes => "gpu_times",
            Self::Proxies => "proxies",
            Self::Requests => "requests",
            Self::Packets => "packets",
            Self::CodeObjects => "code_objects",
            Self::Kernels => "kernels",
            Self::Copies => "copies",
            Self::RingJobs => "ring_jobs",
            Self::DriverCalls => "driver_calls",
            Self::DriverEvents => "driver_events",
            Self::ApiCalls => "api_calls",
            Self::ApiStats => "api_stats",
            Self::Losses => "losses",
        }
    }

    /// Returns a description of the table's rows.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Processes => "Traced processes.",
            Self::Queues => "User queues, with their final counts.",
            Self::Progress => {
                "Samples of AQL queues whose indexes changed since the sample before. Events between two samples have no exact \
                 time. The GPU took packet `i` after the last sample with `read_index <= i` and before the first sample with \
                 `read_index > i`."
            }
            Self::Ioctls => "Ioctls on KFD and DRM devices, from entry to exit.",
            Self::Doorbells => "Stores to the doorbells of AQL queues.",
            Self::DoorbellRuns => {
                "Doorbells that have no rows in `doorbells`, because the disk was too slow: each is in one run. A run has \
                 doorbells of one queue, within less than 10 ms; the indexes of each doorbell follow those of the doorbell before. \
                 The row has their common values; their other values are unknown."
            }
            Self::Dispatches => "Kernel dispatch packets that were published.",
            Self::DispatchRuns => {
                "Dispatches that have no rows in `dispatches`, because the disk was too slow: each is in one run. A run \
                 has consecutive indexes of one queue, within less than 10 ms. The row has their common values; their other values \
                 are unknown. The dispatches of a trace are in both tables."
            }
            Self::GpuTimes => {
                "Exact times when dispatches ran, as the GPU wrote them into their completion signals. There are rows for dispatches \
                 that have such a signal to themselves, on queues that the runtime profiles (HIP does, but gives signals only to dispatches that events or a profiler ask about). Where packets are \
                 unread, or doorbells lost, a row can have the time of such a packet that used the same signal."
            }
            Self::Proxies => {
                "Proxies: queues in memory that a tool such as a profiler puts in front of queues and gives to the program \
                 instead. No GPU reads them; the tool publishes its packets on `queues`."
            }
            Self::Requests => {
                "Kernel dispatches that programs submitted to proxies. The tool decides whether and how they are published: \
                 `dispatches` has the dispatches that the tool published; do not add the two tables."
            }
            Self::Packets => "Published packets other than kernel dispatches, and indexes whose packets are unread.",
            Self::CodeObjects => "Code objects that runtimes loaded: ELF files with GPU kernels.",
            Self::Kernels => "Kernels of the code objects.",
            Self::Copies => "SDMA submissions: stores to the doorbells of SDMA queues.",
            Self::RingJobs => {
                "Jobs of the DRM scheduler on rings of the kernel driver, of every process and of the driver itself."
            }
            Self::DriverCalls => "Calls of functions of the kernel driver: KFD handlers, queue life, MES and HWS.",
            Self::DriverEvents => {
                "Trace events of amdgpu itself, of every process and of the driver. An event that names a job is about a job \
                 that is also in `ring_jobs`; do not add the two tables."
            }
            Self::ApiCalls => {
                "Calls of functions of HIP and HSA by traced processes (`record --api`): the functions of a fixed list, as \
                 called by the users of the libraries. Calls that the HSA runtime makes itself are left out. Calls that HIP makes, \
                 including those to HSA, are inside the enclosing call."
            }
            Self::ApiStats => {
                "Calls that were only counted (`record --api stats`), per function and process. In this mode there are no \
                 `api_calls`, and no submission names a call or a stream."
            }
            Self::Losses => "Events that sources lost.",
        }
    }

    /// Returns the table with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Returns the table that a fact is a row of.
    #[must_use]
    pub const fn of(fact: &Fact) -> Self {
        match fact {
            Fact::Process(_) => Self::Processes,
            Fact::Queue(_) => Self::Queues,
            Fact::Progress(_) => Self::Progress,
            Fact::Ioctl(_) => Self::Ioctls,
            Fact::Doorbell(_) => Self::Doorbells,
            Fact::DoorbellRun(_) => Self::DoorbellRuns,
            Fact::Dispatch(_) => Self::Dispatches,
            Fact::DispatchRun(_) => Self::DispatchRuns,
            Fact::GpuTime(_) => Self::GpuTimes,
            Fact::Proxy(_) => Self::Proxies,
            Fact::Request(_) => Self::Requests,
            Fact::Packet(_) => Self::Packets,
            Fact::CodeObject(_) => Self::CodeObjects,
            Fact::Kernel(_) => Self::Kernels,
            Fact::Copy(_) => Self::Copies,
            Fact::RingJob(_) => Self::RingJobs,
            Fact::DriverCall(_) => Self::DriverCalls,
            Fact::DriverEvent(_) => Self::DriverEvents,
            Fact::ApiCall(_) => Self::ApiCalls,
            Fact::ApiStats(_) => Self::ApiStats,
            Fact::Loss(_) => Self::Losses,
        }
    }

    /// Returns the column that orders the table.
    #[must_use]
    pub const fn time_column(self) -> &'static str {
        match self {
            Self::Processes => "first_ns",
            Self::Queues | Self::Proxies => "created_ns",
            Self::CodeObjects | Self::Kernels => "loaded_ns",
            Self::DoorbellRuns | Self::DispatchRuns => "begin_ns",
            Self::Ioctls | Self::DriverCalls | Self::ApiCalls => "enter_ns",
            Self::Progress
            | Self::Doorbells
            | Self::Dispatches
            | Self::GpuTimes
            | Self::Requests
            | Self::Packets
            | Self::Copies
            | Self::RingJobs
            | Self::DriverEvents
            | Self::ApiStats
            | Self::Losses => "time_ns",
        }
    }

    /// Returns whether a row describes a thing that continues to live. Such a row can be written again, and the last one counts.
    #[must_use]
    pub const fn is_snapshot(self) -> bool {
        matches!(
            self,
            Self::Processes | Self::Queues | Self::Proxies | Self::CodeObjects | Self::ApiStats
        )
    }

    /// Returns whether each row represents several things: the number in the column `count`.
    #[must_use]
    pub const fn is_of_runs(self) -> bool {
        matches!(self, Self::DoorbellRuns | Self::DispatchRuns)
    }

    /// Returns the columns, in order.
    #[must_use]
    pub fn columns(self) -> &'static [Column] {
        static COLUMNS: LazyLock<[Vec<Column>; Table::ALL.len()]> = LazyLock::new(|| Table::ALL.map(rows::columns));
        &COLUMNS[self as usize]
    }

    /// Returns the position of [`Self::time_column`] among the columns.
    pub(crate) fn time_index(self) -> usize {
        let name = self.time_column();
        self.columns().iter().take_while(|column| column.name != name).count()
    }
}

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// True or false.
    Bool,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

impl Kind {
    /// Returns the name in the docs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::Bool => "boolean",
            Self::Text => "string",
            Self::Bytes => "binary",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_indexed_by_their_order() {
        for (index, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, index);
            assert_eq!(Table::of_name(table.name()), Some(table));
        }
    }

    #[test]
    fn every_table_has_a_time_and_no_column_twice() {
        for table in Table::ALL {
            let columns = table.columns();
            let time = &columns[table.time_index()];
            assert_eq!(
                (time.name, time.kind, time.nullable),
                (table.time_column(), Kind::U64, false)
            );
            for (index, column) in columns.iter().enumerate() {
                assert!(
                    columns[..index].iter().all(|other| other.name != column.name),
                    "{table:?}.{}",
                    column.name
                );
                assert!(column.meaning.ends_with('.'), "{table:?}.{}", column.name);
            }
        }
    }
}
