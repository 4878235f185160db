//! What the kernel reports about itself: release, BTF, tracefs, lockdown, and settings that restrict tracing.

use std::{fs, io, path::Path};

use serde::Serialize;

use crate::probes::tracefs;

/// What the kernel reports about itself. tracer draws no conclusions from its release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -m`.
    pub architecture: String,
    /// Whether the kernel describes its types: /sys/kernel/btf/vmlinux.
    pub btf: bool,
    /// Modules of the driver and the scheduler that describe their types.
    pub btf_modules: Vec<String>,
    /// Where tracefs is mounted, as this process sees it; `None` if it is mounted nowhere, or this process may not see it.
    pub tracefs: Option<String>,
    /// The lockdown mode (kernel_lockdown(7)): `none`, `integrity`, `confidentiality`; `None` if unknown.
    pub lockdown: Option<String>,
    /// kernel.unprivileged_bpf_disabled: 0, 1 or 2; matters to processes without CAP_BPF.
    pub unprivileged_bpf_disabled: Option<i32>,
    /// kernel.perf_event_paranoid; matters to processes without CAP_PERFMON.
    pub perf_event_paranoid: Option<i32>,
    /// kernel.kptr_restrict; hides the addresses in /proc/kallsyms, which kprobes by name do not need.
    pub kptr_restrict: Option<i32>,
    /// Whether perf can create uprobes: the event source `uprobe`.
    pub uprobes: bool,
    /// Whether perf can create kprobes: the event source `kprobe`. Currently no capture needs it.
    pub kprobes: bool,
}

/// Examines this kernel.
#[must_use]
pub fn read() -> Kernel {
    let name = rustix::system::uname();
    let btf = Path::new("/sys/kernel/btf");
    let is_tracefs = |root: &&str| Path::new(root).join("events").is_dir();
    let source = |name: &str| Path::new("/sys/bus/event_source/devices").join(name).join("type");
    let setting = |name: &str| number(&fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?);
    Kernel {
        release: name.release().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        btf: btf.join("vmlinux").exists(),
        btf_modules: super::modules_in(btf),
        tracefs: tracefs::ROOTS.into_iter().find(is_tracefs).map(str::to_owned),
        lockdown: lockdown(fs::read_to_string("/sys/kernel/security/lockdown")),
        unprivileged_bpf_disabled: setting("unprivileged_bpf_disabled"),
        perf_event_paranoid: setting("perf_event_paranoid"),
        kptr_restrict: setting("kptr_restrict"),
        uprobes: source("uprobe").exists(),
        kprobes: source("kprobe").exists(),
    }
}

/// Returns the mode in brackets: `none [integrity] confidentiality`. The file is absent if securityfs is not mounted, and if the
/// kernel has no lockdown: in both cases the mode is unknown.
fn lockdown(text: io::Result<String>) -> Option<String> {
    let text = text.ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn number(text: &str) -> Option<i32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lockdown_mode_is_the_one_in_brackets() {
        let mode = |text: &str| lockdown(Ok(text.to_owned()));
        assert_eq!(mode("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(mode("[none] integrity confidentiality\n").as_deref(), Some("none"));
        assert_eq!(mode("garbage"), None);
        assert_eq!(lockdown(Err(io::ErrorKind::NotFound.into())), None);
    }

    #[test]
    fn settings_may_be_negative() {
        assert_eq!(number("-1\n"), Some(-1));
        assert_eq!(number(""), None);
    }

    #[test]
    fn this_kernel_has_a_release() {
        assert!(!read().release.is_empty());
    }
}
