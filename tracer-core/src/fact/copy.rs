//! Copies.

use serde::{Deserialize, Serialize};

use super::Path;

/// An SDMA submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Queue, by its number in the trace; `None` if unknown.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of the doorbell.
    pub time_ns: u64,
    /// The way it took.
    pub path: Path,
    /// First byte of the submission in the queue's command stream.
    pub begin: u64,
    /// One past its last byte.
    pub end: u64,
    /// What its commands do; `None` if they could not be read, or one of them is of an unknown form. Then nothing of what
    /// they do is known.
    pub op: Option<CopyOp>,
    /// Bytes that it moves or fills.
    pub bytes: Option<u64>,
    /// Commands that move or fill: the runtime splits what is too long for one.
    pub commands: Option<u32>,
    /// Address that is read (of a box, the surface's); `None` if nothing is, or not in one row.
    pub source: Option<u64>,
    /// Address that is written, likewise.
    pub destination: Option<u64>,
    /// Between which memories; `None` if the process's allocations do not tell.
    pub direction: Option<Direction>,
    /// Engine that the process chose for the queue; `None` if the driver did.
    pub engine: Option<u32>,
    /// Number of the innermost API call in which its thread rang for it; `None` where in none, or calls were not recorded.
    pub api_call: Option<u64>,
    /// Stream of the innermost call around that doorbell that names one; `None` likewise.
    pub stream: Option<u64>,
}

/// What a submission's commands do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyOp {
    /// Copy bytes in a row.
    Copy,
    /// Copy boxes between surfaces.
    CopyRect,
    /// Fill.
    Fill,
    /// Several of these.
    Mixed,
    /// Nothing of the kind: waits, fences, padding.
    None,
}

impl CopyOp {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::CopyRect => "copy-rect",
            Self::Fill => "fill",
            Self::Mixed => "mixed",
            Self::None => "none",
        }
    }
}

/// Between which memories data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl Direction {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H2d => "h2d",
            Self::D2h => "d2h",
            Self::D2d => "d2d",
            Self::H2h => "h2h",
        }
    }
}
