//! The traced devices, libraries and probes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracer_core::family::Family;

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// KFD gpu id.
    pub gpu_id: u32,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Instruction set, as the KFD numbers it: 90402 for gfx942.
    #[serde(default)]
    pub gfx_target_version: u32,
    /// The scheduler of its user queues.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Compute units, by the KFD topology; `None` in traces of older versions.
    #[serde(default)]
    pub compute_units: Option<u32>,
    /// Compute queues that it runs at once (`num_cp_queues` of the KFD topology); `None` in traces of older versions.
    #[serde(default)]
    pub compute_queues: Option<u32>,
    /// Product name, by the PCI ids and libdrm's list (`amdgpu.ids`); `None` if that does not tell it, and in traces of older
    /// versions.
    #[serde(default)]
    pub product: Option<String>,
}

/// The scheduler of a GPU's user queues, and the evidence for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scheduler {
    /// The kind of scheduler.
    pub kind: SchedulerKind,
    /// The evidence, in sentences.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// A scheduler of user queues.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SchedulerKind {
    /// Micro-engine scheduler.
    Mes,
    /// Hardware scheduler of the compute microcode (CPSCH).
    Hws,
    /// No scheduler: the driver maps queues itself.
    Nohws,
    /// Unknown, or a kind that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A library that was searched for probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Library {
    /// Path, as the process sees it.
    pub path: String,
    /// Device of its file, `major:minor` as in /proc/PID/maps.
    pub device: String,
    /// Inode of its file.
    pub inode: u64,
    /// Build id, in hexadecimal.
    #[serde(default)]
    pub build_id: Option<String>,
    /// The soname of the library.
    #[serde(default)]
    pub soname: Option<String>,
}

/// A probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Family.
    pub family: Family,
    /// Path of the library, as in [`Library::path`]; `None` for a probe in the kernel.
    #[serde(default)]
    pub library: Option<String>,
    /// Symbol, or the role of a function without one; for a kernel probe its tracepoint or function.
    pub symbol: String,
    /// Offset in the library's file.
    #[serde(default)]
    pub file_offset: Option<u64>,
    /// Instruction at the probe: `nop`, `push`, ...; it decides the cost of a hit.
    #[serde(default)]
    pub instruction: Option<String>,
    /// ns that a hit costs by itself at such an instruction on this machine; measured with a program that only counts.
    #[serde(default)]
    pub hit_ns: Option<u64>,
    /// Step of the resolver that found it.
    #[serde(default)]
    pub resolver: Option<String>,
    /// The resolver's confidence that the probe sees its events: `high`, `medium`, `low` (docs/doctor.md).
    #[serde(default)]
    pub confidence: Option<String>,
    /// Whether the probe was attached.
    pub attached: bool,
    /// The reason why it was not attached.
    #[serde(default)]
    pub error: Option<String>,
}
