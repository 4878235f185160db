//! What this process may do.

use std::fs;

use serde::Serialize;

/// The capabilities that recording uses (include/uapi/linux/capability.h), with their bits.
const NEEDED: [(&str, u32); 4] = [
    ("CAP_BPF", 39),
    ("CAP_PERFMON", 38),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_PTRACE", 19),
];

/// What this process may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rights {
    /// Its effective user.
    pub euid: u32,
    /// The capabilities of use, each with whether it is effective.
    pub capabilities: Vec<Capability>,
}

/// A capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// Whether this process has it.
    pub effective: bool,
}

impl Rights {
    /// Whether the process has a capability.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.capabilities.iter().any(|c| c.name == name && c.effective)
    }
}

/// Looks at this process.
#[must_use]
pub fn read() -> Rights {
    // Of the process: no thread of the tracer changes its capabilities.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    of(rustix::process::geteuid().as_raw(), &status)
}

/// From the text of /proc/PID/status.
fn of(euid: u32, status: &str) -> Rights {
    let set = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .unwrap_or(0);
    let capability = |(name, bit): (&'static str, u32)| Capability {
        name,
        effective: set >> bit & 1 != 0,
    };
    Rights {
        euid,
        capabilities: NEEDED.into_iter().map(capability).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let status = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t000000c000000000\nCapBnd:\t000001ffffffffff\n";
        let rights = of(1000, status);
        assert!(rights.has("CAP_BPF") && rights.has("CAP_PERFMON"));
        assert!(!rights.has("CAP_SYS_ADMIN") && !rights.has("CAP_SYS_PTRACE"));
    }

    #[test]
    fn without_a_set_there_are_no_rights() {
        assert!(of(0, "").capabilities.iter().all(|c| !c.effective));
    }
}
