//! Copies and fills.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Path, table};

table! {
    /// Copies and fills: stores to the doorbells of SDMA queues, and dispatches of kernels that copy or fill for HIP, OpenCL or the
    /// runtime. The latter are rows of `dispatches`, too, and have `by` `kernel`: do not add the two tables.
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
        /// What moves the bytes: `sdma` or `kernel`. Null in traces of versions that knew SDMA only.
        pub by: Option<CopiedBy>,
        /// Where the submission begins in the queue's command stream; a packet is 64 bytes of an AQL queue's.
        pub begin: u64 => "bytes",
        /// Where it ends, exclusive.
        pub end: u64 => "bytes",
        /// Effect of its commands: `copy`, `copy-rect`, `fill`, `mixed` or `none` (waits, padding); null if they were not read, or
        /// one is of an unknown form, and for a kernel of the runtime, which copies or fills.
        pub op: Option<CopyOp>,
        /// Bytes that it moves or fills; null if its commands are unknown. For a kernel, those that the call around it names; null
        /// if that is unknown or not recorded, or the call submitted more than this kernel.
        pub bytes: Option<u64> => "bytes",
        /// Commands that move or fill; null if they are unknown.
        pub commands: Option<u32> => "commands",
        /// Source address (for a box, of the surface); null if there is none, it is not one row, or it is unknown.
        pub source: Option<u64> => "address",
        /// Destination address; null in the same cases.
        pub destination: Option<u64> => "address",
        /// Direction of the copy, by the process's allocations: `h2d`, `d2h`, `d2d` or `h2h`. Memory outside of them is the host's
        /// if tracer watched the process from its start, and nothing can have moved it to a GPU. Null if an end is unknown, and
        /// for a kernel.
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

/// What moves the bytes of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CopiedBy {
    /// An SDMA engine.
    Sdma,
    /// A kernel.
    Kernel,
}

impl Copy {
    /// Returns whether a kernel moves the bytes: then the row is a dispatch, too.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.by == Some(CopiedBy::Kernel)
    }
}

/// Operation of a submission's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
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
