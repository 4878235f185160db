//! The rights of this process.

use serde::Serialize;

use crate::{
    kernel::rights::{OF_USE, RECORDING, effective},
    target::pid_namespace,
};

/// The rights of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rights {
    /// Its effective user.
    pub euid: u32,
    /// Whether process ids here differ from those in the kernel's events, as in most containers.
    pub own_pid_namespace: bool,
    /// The useful capabilities, each with whether it is effective.
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
    /// Returns whether the process has a capability.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.capabilities.iter().any(|c| c.name == name && c.effective)
    }
}

/// Reads the rights of this process.
#[must_use]
pub fn read() -> Rights {
    Rights {
        own_pid_namespace: pid_namespace::is_own(),
        ..of(rustix::process::geteuid().as_raw(), effective())
    }
}

fn of(euid: u32, set: u64) -> Rights {
    let capability = |(name, bit): (&'static str, u32)| Capability {
        name,
        effective: set >> bit & 1 != 0,
    };
    Rights {
        euid,
        own_pid_namespace: false,
        capabilities: RECORDING.into_iter().chain(OF_USE).map(capability).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let rights = of(1000, 0xc0_0000_0000);
        assert!(rights.has("CAP_BPF") && rights.has("CAP_PERFMON"));
        assert!(!rights.has("CAP_SYS_ADMIN") && !rights.has("CAP_SYS_PTRACE"));
    }

    #[test]
    fn without_a_set_there_are_no_rights() {
        assert!(of(0, 0).capabilities.iter().all(|c| !c.effective));
    }
}
