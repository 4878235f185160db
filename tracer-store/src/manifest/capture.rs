//! What was there to be traced, and how it was.

use serde::{Deserialize, Serialize};

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// KFD gpu id.
    pub gpu_id: u32,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Instruction set, as the KFD numbers it: 90402 for gfx942.
    #[serde(default)]
    pub gfx_target_version: u32,
    /// What schedules its user queues.
    #[serde(default)]
    pub scheduler: Scheduler,
}

/// What schedules the user queues of a GPU, and how that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// Which one.
    pub kind: SchedulerKind,
    /// What says so, in sentences.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// A scheduler of user queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerKind {
    /// Micro-engine scheduler.
    Mes,
    /// Hardware scheduler of the compute microcode (CPSCH).
    Hws,
    /// None: the driver maps queues itself.
    Nohws,
    /// Not known, or one that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl SchedulerKind {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mes => "mes",
            Self::Hws => "hws",
            Self::Nohws => "nohws",
            Self::Unknown => "unknown",
        }
    }
}

/// A library in which probes were looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Path, as the process saw it.
    pub path: String,
    /// Device of its file, `major:minor` as in /proc/PID/maps.
    pub device: String,
    /// Inode of its file.
    pub inode: u64,
    /// Build id, in hexadecimal.
    #[serde(default)]
    pub build_id: Option<String>,
    /// The name that it gives itself.
    #[serde(default)]
    pub soname: Option<String>,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Family: `doorbell`, `reserve`, ...
    pub family: String,
    /// Path of the library, as in [`Library::path`]; `None` for a probe in the kernel.
    #[serde(default)]
    pub library: Option<String>,
    /// Symbol, or the role of a function without one; of a kernel probe its tracepoint or function.
    pub symbol: String,
    /// Where it is in the library's file.
    #[serde(default)]
    pub file_offset: Option<u64>,
    /// Instruction that it sits on: `nop`, `push`, ...; it decides what a hit costs.
    #[serde(default)]
    pub instruction: Option<String>,
    /// Step of the resolver that found it.
    #[serde(default)]
    pub resolver: Option<String>,
    /// How sure the resolver is that it sees what it is for: `high`, `medium`, `low` (docs/doctor.md).
    #[serde(default)]
    pub confidence: Option<String>,
    /// Whether it was attached.
    pub attached: bool,
    /// Why it was not.
    #[serde(default)]
    pub error: Option<String>,
}
