//! Copies.

use serde::{Deserialize, Serialize};

use super::Path;

/// An SDMA submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// Queue number in the trace; `None` if unknown.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of the doorbell.
    pub time_ns: u64,
    /// The path that it took.
    pub path: Path,
    /// First byte of the submission in the queue's command stream.
    pub begin: u64,
    /// One past its last byte.
    pub end: u64,
    /// Operation of its commands; `None` if they could not be read, or if the form of one of them is unknown. In that case nothing
    /// is known of their effect.
    pub op: Option<CopyOp>,
    /// Bytes that it moves or fills.
    pub bytes: Option<u64>,
    /// Number of commands that move or fill. The runtime splits an operation that is too long for one command.
    pub commands: Option<u32>,
    /// Address that is read (for a box, the address of the surface); `None` if none is read, or if the bytes are not contiguous.
    pub source: Option<u64>,
    /// Address that is written, in the same way.
    pub destination: Option<u64>,
    /// Memories between which data moves; `None` if the process's allocations do not show it.
    pub direction: Option<Direction>,
    /// Engine that the process chose for the queue; `None` if the driver chose it.
    pub engine: Option<u32>,
    /// Number of the innermost API call in which the thread rang for it; `None` if outside any call, or if calls were not recorded.
    pub api_call: Option<u64>,
    /// Stream of the innermost call around that doorbell that names a stream; `None` under the same conditions.
    pub stream: Option<u64>,
}

/// Operation of a submission's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl CopyOp {
    /// Returns the name used in data.
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

/// Memories between which data moves.
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
    /// Returns the name used in data.
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
