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

/// Reads the rights of this process.
#[must_use]
pub fn read() -> Rights {
    Rights {
        euid: rustix::process::geteuid().as_raw(),
        own_pid_namespace: pid_namespace::is_own(),
        capabilities: capabilities(effective()),
    }
}

/// Returns the useful capabilities, of which those in `set` are effective.
fn capabilities(set: u64) -> Vec<Capability> {
    let capability = |(name, bit): (&'static str, u32)| Capability {
        name,
        effective: set >> bit & 1 != 0,
    };
    RECORDING.into_iter().chain(OF_USE).map(capability).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_counts() {
        let capabilities = capabilities(0xc0_0000_0000);
        let has = |name: &str| capabilities.iter().any(|c| c.name == name && c.effective);
        assert!(has("CAP_BPF") && has("CAP_PERFMON"));
        assert!(!has("CAP_SYS_ADMIN") && !has("CAP_SYS_PTRACE"));
    }

    #[test]
    fn without_a_set_there_are_no_rights() {
        assert!(capabilities(0).iter().all(|c| !c.effective));
    }
}
