//! Capture backends: the ways in which a recording reads the kernel's probes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a recording was captured.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Backend {
    /// Probes run eBPF programs, which read packets before the GPU can take them. All traces of versions before this field.
    #[default]
    Ebpf,
    /// Probes write perf samples, and the recorder reads packets from memory afterwards: docs/backends.md.
    Perf,
    /// Probes write records of ftrace, and the recorder reads packets from memory afterwards.
    Ftrace,
    /// A backend that this version does not know.
    #[serde(other)]
    Other,
}
