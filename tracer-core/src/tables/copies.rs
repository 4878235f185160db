//! SDMA submissions.

use serde::{Deserialize, Serialize};

use super::{Path, table};

table! {
    /// SDMA submissions: stores to the doorbells of SDMA queues.
    pub struct Copy: "copies" by time_ns, Events {
        /// Queue, as in `queues.queue`; null if unknown.
        pub queue: Option<u32>,
        /// Process.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Time of the doorbell.
        pub time_ns: u64 => "ns",
        /// Path: `doorbell`, `ring`, `thunk` or `unseen`.
        pub path: Path,
        /// Where the submission begins in the queue's command stream.
        pub begin: u64 => "bytes",
        /// Where it ends, exclusive.
        pub end: u64 => "bytes",
        /// Effect of its commands: `copy`, `copy-rect`, `fill`, `mixed` or `none` (waits, padding); null if they were not read, or
        /// one is of an unknown form.
        pub op: Option<CopyOp>,
        /// Bytes that it moves or fills; null in the same case.
        pub bytes: Option<u64> => "bytes",
        /// Commands that move or fill; null in the same case.
        pub commands: Option<u32> => "commands",
        /// Source address (for a box, of the surface); null if there is none, it is not one row, or it is unknown.
        pub source: Option<u64> => "address",
        /// Destination address; null in the same case.
        pub destination: Option<u64> => "address",
        /// Direction of the copy, by the process's allocations: `h2d`, `d2h`, `d2d` or `h2h`. Memory outside of them is the host's
        /// if tracer watched the process from its start, and nothing can have moved it to a GPU. Null if an end is unknown.
        pub direction: Option<Direction>,
        /// SDMA engine that the process chose for the queue; null if the driver chose.
        pub engine: Option<u32>,
        /// Innermost API call in which the thread rang, as in `api_calls.call`; null where in none, or where calls were not
        /// recorded.
        pub api_call: Option<u64>,
        /// Stream (`hipStream_t`) of the innermost call around it that names one, 0 for the default stream; null in the same case.
        pub stream: Option<u64>,
    }
}

/// Operation of a submission's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CopyOp {
    /// Copy contiguous bytes.
    Copy,
    /// Copy boxes between surfaces.
    CopyRect,
    /// Fill memory.
    Fill,
    /// Several of these operations.
    Mixed,
    /// None of these operations: waits, fences, padding.
    None,
}

/// Memories between which data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Direction {
    /// Host to GPU.
    H2d,
    /// GPU to host.
    D2h,
    /// GPU to GPU, the same or another.
    D2d,
    /// Host to host.
    H2h,
}
