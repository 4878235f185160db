//! Processes that began to use the KFD while a command ran, and that are not in the command's process tree: a daemon or a container
//! runtime started them, or they do work for the command.
//!
//! tracer follows no path of these processes. It reads `/proc/PID/fd` as links only, which opens no file of theirs and waits for
//! none. The driver's own list, `/sys/class/kfd/kfd/proc`, also names daemons that ran before. A simulated device is not in any
//! such list, so tracer finds only processes that started in between.

use std::{collections::BTreeSet, path::Path};

use crate::{
    kernel::kfd_proc::{self, Numbering},
    sys,
    target::process_stat::{self, Stat, comm},
};

/// The end of a link to the KFD. For a process that changed its root (chroot), the path of that root precedes it.
const DEVICE: &str = "dev/kfd";

/// The moment from which a use counts as new.
#[derive(Debug)]
pub struct Since {
    /// Clock ticks since boot, as in /proc/PID/stat.
    ticks: u64,
    /// Processes that used the KFD before, by the driver's list.
    before: BTreeSet<u32>,
}

/// A process outside of the command's tree that uses the KFD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub comm: Vec<u8>,
}

impl Since {
    /// Returns the present moment.
    #[must_use]
    pub fn now() -> Self {
        let [_, since_boot_ns, _] = sys::clocks();
        // A process that starts in the same tick counts as new.
        let ticks = u128::from(since_boot_ns) * u128::from(rustix::param::clock_ticks_per_second()) / 1_000_000_000;
        Self {
            ticks: u64::try_from(ticks).unwrap_or(u64::MAX),
            before: listed(),
        }
    }

    /// Returns the processes that have begun to use the KFD since then, except `known` ones.
    #[must_use]
    pub fn users(&self, known: &BTreeSet<u32>) -> Vec<User> {
        let mut found: BTreeSet<u32> = &listed() - &self.before;
        found.extend(process_stat::all().filter(|&pid| self.is_new(pid) && has_open(pid)));
        let others = found.into_iter().filter(|pid| !known.contains(pid));
        others.map(|pid| User { pid, comm: comm(pid) }).collect()
    }

    fn is_new(&self, pid: u32) -> bool {
        Stat::of_process(pid).is_some_and(|stat| stat.start_ticks >= self.ticks)
    }
}

/// Returns the processes in the driver's list; none if the driver is not loaded.
pub(super) fn listed() -> BTreeSet<u32> {
    // Types of queues do not matter here.
    let listed = kfd_proc::below(Path::new("/"), Numbering::Unknown).unwrap_or_default();
    listed.into_iter().map(|process| process.pid).collect()
}

/// Returns whether a descriptor of the process refers to the KFD.
fn has_open(pid: u32) -> bool {
    process_stat::open_files(pid).any(|file| file.ends_with(DEVICE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_new_if_it_started_since() {
        let since = Since::now();
        assert!(!since.is_new(1) && !since.is_new(u32::MAX));
        let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        assert!(since.is_new(child.id()));
        assert!(!has_open(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
