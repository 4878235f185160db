//! Processes that began to use the KFD while a command ran, and that the command's tree does not have: a daemon or a
//! container runtime started them, or works for the command itself.
//!
//! No path of theirs is followed: `/proc/PID/fd` is read as links only, which reads no foreign file and waits for none. The
//! driver's own list, `/sys/class/kfd/kfd/proc`, also names daemons that ran before. A simulated device is in no such
//! list, so there only processes that started meanwhile are found.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    kfd_proc::{self, Numbering},
    process_stat::Stat,
    sys,
};

/// The end of a link to the KFD. Before it stands the root of a process that changed it (chroot).
const DEVICE: &str = "dev/kfd";

/// The moment from which on a use is new.
#[derive(Debug)]
pub struct Since {
    /// Since boot, in clock ticks, as in /proc/PID/stat.
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
    /// From now on.
    #[must_use]
    pub fn now() -> Self {
        let [_, since_boot_ns, _] = sys::clocks();
        // A process that starts in the same tick is new.
        let ticks = u128::from(since_boot_ns) * u128::from(rustix::param::clock_ticks_per_second()) / 1_000_000_000;
        Self {
            ticks: u64::try_from(ticks).unwrap_or(u64::MAX),
            before: listed(),
        }
    }

    /// Processes that use the KFD since then, but those of `known`.
    #[must_use]
    pub fn users(&self, known: &BTreeSet<u32>) -> Vec<User> {
        let mut found: BTreeSet<u32> = &listed() - &self.before;
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        found.extend(pids.filter(|&pid| self.is_new(pid) && has_open(pid)));
        let others = found.into_iter().filter(|pid| !known.contains(pid));
        others.map(|pid| User { pid, comm: comm(pid) }).collect()
    }

    fn is_new(&self, pid: u32) -> bool {
        started(pid).is_some_and(|ticks| ticks >= self.ticks)
    }
}

/// When a process started, in clock ticks since boot.
fn started(pid: u32) -> Option<u64> {
    Some(Stat::of_process(pid)?.start_ticks)
}

/// Processes in the driver's list; none where it is not loaded.
fn listed() -> BTreeSet<u32> {
    let listed = kfd_proc::below(Path::new("/"), Numbering::Unknown).unwrap_or_default();
    listed.into_iter().map(|process| process.pid).collect()
}

/// Whether a descriptor of the process is the KFD's.
fn has_open(pid: u32) -> bool {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links
        .filter_map(|link| fs::read_link(link.path()).ok())
        .any(|target| target.ends_with(DEVICE))
}

fn comm(pid: u32) -> Vec<u8> {
    let mut comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.truncate(comm.len().saturating_sub(1));
    comm
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
