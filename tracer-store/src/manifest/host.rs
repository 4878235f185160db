//! The machine that a trace was taken on.

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine that a trace was taken on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Release of the kernel: `6.12.107+deb13-amd64`.
    pub kernel_release: String,
    /// Version string of the kernel.
    pub kernel_version: String,
    /// Architecture: `x86_64`.
    pub machine: String,
    /// Id of the boot. CLOCK_MONOTONIC times of traces with the same id can be compared.
    #[serde(default)]
    pub boot_id: Option<String>,
}

impl Host {
    /// Returns this machine.
    #[must_use]
    pub fn here() -> Self {
        let system = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        Self {
            name: text(system.nodename()),
            kernel_release: text(system.release()),
            kernel_version: text(system.version()),
            machine: text(system.machine()),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .ok()
                .map(|id| id.trim().to_owned()),
        }
    }
}
