//! The fields of `/proc/PID/stat` that tracer uses.

use std::{collections::BTreeSet, fs, io, path::PathBuf};

/// Clock ticks per second in /proc, for every program (USER_HZ of include/asm-generic/param.h).
const TICKS: u64 = 100;
const NS: u64 = 1_000_000_000;
/// The flag of threads that are exiting (include/linux/sched.h).
const PF_EXITING: u64 = 0x4;
/// The flag of kernel threads (include/linux/sched.h).
pub(crate) const PF_KTHREAD: u64 = 0x0020_0000;

/// State, parent, threads and start time of a process or thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// State letter: `T` stopped by a signal, `t` stopped by a debugger, `Z` and `X` exited.
    pub state: char,
    /// Process id of the parent.
    pub parent: u32,
    /// The kernel's flags (`PF_*` of include/linux/sched.h).
    pub flags: u64,
    /// Threads of its process.
    pub threads: u32,
    /// Start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads the fields of a process; `None` if it has exited and was waited for.
    pub fn of_process(pid: u32) -> Option<Self> {
        Self::try_of_process(pid).ok().flatten()
    }

    /// As [`Self::of_process`], but returns an error if the file cannot be read.
    pub fn try_of_process(pid: u32) -> io::Result<Option<Self>> {
        Self::try_read(&format!("/proc/{pid}/stat"))
    }

    /// Reads the fields of a thread.
    pub fn try_of_thread(pid: u32, tid: u32) -> io::Result<Option<Self>> {
        Self::try_read(&format!("/proc/{pid}/task/{tid}/stat"))
    }

    fn try_read(path: &str) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(Self::parse(&String::from_utf8_lossy(&text))),
            Err(error) if is_exited(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parses the text. The name, field 2, may contain anything but ends at the last parenthesis. Fields of proc(5): 3 state, 4
    /// parent, 9 flags, 20 threads, 22 start.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut words = rest.split(' ');
        Some(Self {
            state: words.next()?.chars().next()?,
            parent: words.next()?.parse().ok()?,
            flags: words.nth(4)?.parse().ok()?,
            threads: words.nth(10)?.parse().ok()?,
            start_ticks: words.nth(1)?.parse().ok()?,
        })
    }

    /// Returns whether it started at this moment, ns of CLOCK_BOOTTIME.
    pub fn began_at(&self, start_ns: u64) -> bool {
        self.start_ticks == start_ns / (NS / TICKS)
    }

    /// Returns when it started, ns of CLOCK_BOOTTIME, to a clock tick.
    pub fn start_ns(&self) -> u64 {
        self.start_ticks.saturating_mul(NS / TICKS)
    }

    /// Returns whether it has exited.
    pub fn has_exited(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Returns whether it has exited, or is about to.
    pub fn is_exiting(&self) -> bool {
        self.has_exited() || self.flags & PF_EXITING != 0
    }

    /// Returns whether it is a thread of the kernel.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }
}

/// Returns the value of a line of /proc/PID/status.
pub(crate) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim());
    status.lines().find_map(line)
}

/// Returns whether an error of a file in /proc means that the process or thread has exited.
pub(crate) fn is_exited(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Returns whether a process is running or stopped: it has not exited.
pub(crate) fn is_alive(pid: u32) -> bool {
    Stat::of_process(pid).is_some_and(|stat| !stat.has_exited())
}

/// Adds the children of the processes, and all further descendants.
pub(crate) fn add_descendants(pids: &mut BTreeSet<u32>) {
    if pids.is_empty() {
        return;
    }
    let parents: Vec<(u32, u32)> = all()
        .filter_map(|pid| Some((pid, Stat::of_process(pid)?.parent)))
        .collect();
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(child, parent)| pids.contains(parent) && !pids.contains(child))
            .map(|&(child, _)| child)
            .collect();
        if more.is_empty() {
            return;
        }
        pids.extend(more);
    }
}

/// Returns the ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns what the descriptors of a process refer to. This opens no file, and waits for none.
pub(crate) fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok())
}

/// Returns the name of a process, at most 15 bytes; empty if it cannot be read.
pub(crate) fn comm(pid: u32) -> Vec<u8> {
    let mut comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    // The newline at the end.
    comm.pop();
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        let text = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            (stat.state, stat.parent, stat.flags, stat.start_ticks),
            ('S', 3, 4_194_560, 12345)
        );
        assert!(stat.began_at(123_450_000_000) && stat.began_at(123_459_999_999));
        assert!(!stat.began_at(123_460_000_000));
    }

    #[test]
    fn children_are_descendants() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut pids = BTreeSet::from([std::process::id()]);
        add_descendants(&mut pids);
        let found = pids.contains(&child.id());
        let _ = child.kill();
        let _ = child.wait();
        assert!(found);
    }
}
