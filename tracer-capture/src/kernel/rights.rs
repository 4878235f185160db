//! The capabilities that recording needs: one list for messages, `doctor` and tests. docs/security.md gives the purpose of each.

use std::fs;

use tracer_core::backend::Backend;

use crate::CaptureError;

/// A capability: its name, and its bit in include/uapi/linux/capability.h.
pub type Capability = (&'static str, u32);

/// Capabilities that every recording needs: no recording starts without all of them.
pub const RECORDING: [Capability; 7] = [
    ("CAP_BPF", 39),
    ("CAP_PERFMON", 38),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_CHECKPOINT_RESTORE", 40),
    ("CAP_KILL", 5),
];

/// Capabilities that a recording by perf events needs. Without CAP_SYS_ADMIN, tracefs must be mounted for ioctls to be captured.
pub const PERF_RECORDING: [Capability; 5] = [
    ("CAP_PERFMON", 38),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_CHECKPOINT_RESTORE", 40),
    ("CAP_KILL", 5),
];

/// Capabilities that a recording by ftrace needs, beside write access to tracefs.
pub const FTRACE_RECORDING: [Capability; 4] = [
    ("CAP_SYS_PTRACE", 19),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_CHECKPOINT_RESTORE", 40),
    ("CAP_KILL", 5),
];

/// Returns the capabilities that a recording by a backend needs.
#[must_use]
pub fn of(backend: Backend) -> &'static [Capability] {
    match backend {
        Backend::Perf => &PERF_RECORDING,
        Backend::Ftrace => &FTRACE_RECORDING,
        Backend::Ebpf | Backend::Other => &RECORDING,
    }
}

/// Capabilities with which root gives up its rights over files in the processes that read files of others.
pub const CONFINING: [Capability; 2] = [("CAP_SETUID", 7), ("CAP_SETGID", 6)];

/// Capabilities that tracer uses if it has them: to raise the limit of descriptors and its own priority, and those of [`CONFINING`].
pub const OF_USE: [Capability; 4] = [
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_SYS_NICE", 23),
    CONFINING[0],
    CONFINING[1],
];

/// Further capabilities that tracer needs to run a command as the user who called sudo, and to write files for that user.
pub const FOR_A_USER: [Capability; 3] = [CONFINING[0], CONFINING[1], ("CAP_SETPCAP", 8)];

/// Fails unless this process has all of these capabilities.
///
/// # Errors
/// [`CaptureError::Lacking`] names the missing ones.
pub fn require(needed: &[Capability]) -> Result<(), CaptureError> {
    let missing = missing_of(needed);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(CaptureError::Lacking(missing))
    }
}

/// Returns the names of those capabilities that this process does not have.
#[must_use]
pub fn missing_of(needed: &[Capability]) -> Vec<&'static str> {
    missing(effective(), needed)
}

/// Returns the fix for missing capabilities, for messages.
#[must_use]
pub fn fix() -> String {
    let names = |capabilities: &[Capability]| {
        let names: Vec<String> = capabilities.iter().map(|(name, _)| name.to_lowercase()).collect();
        names.join(", ")
    };
    let recording = names(&[RECORDING.as_slice(), &OF_USE].concat());
    let user: Vec<Capability> = FOR_A_USER.into_iter().filter(|own| !OF_USE.contains(own)).collect();
    let user = names(&user);
    format!("run with sudo, or grant {recording}; to run commands or write files for a user, also {user}")
}

/// Returns the effective set of this process. The threads of tracer that ask do not change their own set.
pub(crate) fn effective() -> u64 {
    effective_in(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Returns the effective set in the text of /proc/PID/status.
pub(crate) fn effective_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .unwrap_or(0)
}

fn missing(set: u64, needed: &[Capability]) -> Vec<&'static str> {
    let lacks = |(_, bit): &&Capability| set >> bit & 1 == 0;
    needed.iter().filter(lacks).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t000000c000000000\nCapBnd:\t000001ffffffffff\n";
        let set = effective_in(status);
        assert_eq!(missing(set, &RECORDING[..4]), ["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"]);
        assert_eq!(missing(effective_in(""), &FOR_A_USER).len(), FOR_A_USER.len());
    }

    #[test]
    fn the_fix_names_each() {
        let fix = fix();
        for (name, _) in RECORDING.iter().chain(&OF_USE).chain(&FOR_A_USER) {
            assert!(fix.contains(&name.to_lowercase()), "{name}: {fix}");
        }
    }
}
