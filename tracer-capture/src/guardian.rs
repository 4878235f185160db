//! A process that outlives the recorder: whatever kills the recorder, nothing that it stopped stays stopped.
//!
//! The recorder names traced processes through a pipe. When the pipe closes, because the recorder ended in any way,
//! the guardian lets those of them go on that are stopped, and ends. The eBPF programs are gone by then: their
//! descriptors were the recorder's.
//!
//! A command and what it makes are the recorder's own. Processes that were attached to are not: somebody else may have
//! stopped one of them, and that is to stay. Only those go on that are held right now, or whose stop shows where it came
//! from: at the end of a system call that maps a file to execute. Where the whole machine is traced that may be any
//! process, and the call may be its first ioctl of the KFD's, too.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

use tracer_common::kfd;

use crate::{CaptureError, sys};

/// The recorder's end of the pipe.
#[derive(Debug)]
pub struct Guardian {
    pipe: io::PipeWriter,
}

impl Guardian {
    /// Forks the guardian.
    ///
    /// # Errors
    /// [`CaptureError::System`] if no process or pipe can be had.
    ///
    /// # Safety
    /// The calling process must have one thread only, since the child runs Rust code after a fork.
    pub unsafe fn start() -> Result<Self, CaptureError> {
        let (reader, pipe) = io::pipe().map_err(|e| CaptureError::system("pipe", e))?;
        // SAFETY: one thread only, by this function's contract, so no lock can be held by another one.
        match unsafe { libc::fork() } {
            -1 => Err(CaptureError::system("fork", io::Error::last_os_error())),
            0 => {
                drop(pipe);
                guard(reader.into());
                // SAFETY: ends the child without running the recorder's exit handlers.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Self { pipe }),
        }
    }

    /// Names a process of the command's that may be stopped by the recorder from now on.
    pub fn watch(&mut self, pid: u32) {
        self.tell(Word::Own, pid);
    }

    /// Names a process that is attached to.
    pub fn attach(&mut self, pid: u32) {
        self.tell(Word::Attached, pid);
    }

    /// Any process of the machine may be held from now on.
    pub fn watch_all(&mut self) {
        self.tell(Word::All, 0);
    }

    /// A process that was attached to, or a child of one, is held.
    pub fn held(&mut self, pid: u32) {
        self.tell(Word::Held, pid);
    }

    /// Its hold is over.
    pub fn free(&mut self, pid: u32) {
        self.tell(Word::Free, pid);
    }

    fn tell(&mut self, word: Word, pid: u32) {
        let [a, b, c, d] = pid.to_ne_bytes();
        if let Err(error) = self.pipe.write_all(&[word as u8, a, b, c, d]) {
            log::warn!("the guardian is gone ({error}): a recorder that is killed may leave processes stopped");
        }
    }
}

/// What the recorder says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Own,
    Attached,
    Held,
    Free,
    All,
}

/// The processes that the guardian knows.
#[derive(Debug, Default)]
struct Watched {
    own: BTreeSet<u32>,
    attached: BTreeSet<u32>,
    held: BTreeSet<u32>,
    /// Whether there may be others that nobody named.
    all: bool,
}

impl Watched {
    fn hear(&mut self, word: u8, pid: u32) {
        let _ = match word {
            w if w == Word::Own as u8 => self.own.insert(pid),
            w if w == Word::Attached as u8 => self.attached.insert(pid),
            w if w == Word::Held as u8 => self.held.insert(pid),
            w if w == Word::All as u8 => !std::mem::replace(&mut self.all, true),
            _ => self.held.remove(&pid),
        };
    }

    /// Lets go on whatever the recorder may have left stopped.
    fn release(&mut self) {
        // Children that were forked after the last message are descendants of those named.
        add_descendants(&mut self.own);
        add_descendants(&mut self.attached);
        let named: BTreeSet<u32> = [&self.own, &self.attached, &self.held]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let ours = |pid: &u32| {
            let held = self.own.contains(pid) || self.held.contains(pid);
            // Of others, another tracer may hold some at a mapping.
            held || named.contains(pid) && is_stopped_at_mapping(*pid) || self.all && is_stopped_at_entering(*pid)
        };
        let mut all = named.clone();
        if self.all {
            all.extend(parents().into_iter().map(|(pid, _)| pid));
        }
        for &pid in all
            .iter()
            .filter(|&&pid| state(pid) == Some('T'))
            .filter(|pid| ours(pid))
        {
            let _ = sys::signal(pid, libc::SIGCONT);
        }
    }
}

/// The child: deaf to the terminal's signals, since its work comes after the recorder's end.
fn guard(pipe: OwnedFd) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"tracer-guardian".as_ptr()) };
    // Keeping the recorder's standard streams open would keep a reader of its output waiting.
    for fd in 0..3 {
        // SAFETY: plain descriptors of this process, which uses none of them.
        unsafe { libc::close(fd) };
    }
    let mut pipe = fs::File::from(pipe);
    let mut watched = Watched::default();
    let mut message = [0; 5];
    while pipe.read_exact(&mut message).is_ok() {
        let [word, a, b, c, d] = message;
        watched.hear(word, u32::from_ne_bytes([a, b, c, d]));
    }
    // A stop that was on its way when the recorder died may still arrive.
    for pause_ms in [0, 20, 200] {
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        watched.release();
    }
}

/// Adds the children of processes, and theirs.
pub(crate) fn add_descendants(pids: &mut BTreeSet<u32>) {
    if pids.is_empty() {
        return;
    }
    let parents = parents();
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(c, p)| pids.contains(p) && !pids.contains(c))
            .map(|&(c, _)| c)
            .collect();
        if more.is_empty() {
            return;
        }
        pids.extend(more);
    }
}

/// Whether a thread of a stopped process stands at the end of an mmap of something to execute: there, and nowhere else,
/// mappings are held. A thread that another one's signal stops in user space is in no system call.
pub(crate) fn is_stopped_at_mapping(pid: u32) -> bool {
    is_in(pid, is_executable_mapping)
}

/// Whether a thread of a stopped process stands at the end of an ioctl by which processes begin to use the KFD: there those
/// are held that enter by themselves.
pub(crate) fn is_stopped_at_entering(pid: u32) -> bool {
    is_in(pid, is_entering)
}

fn is_in(pid: u32, call: fn(&str) -> bool) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let mut calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
    calls.any(|text| call(&text))
}

fn is_executable_mapping(call: &str) -> bool {
    argument(call, libc::SYS_mmap, 2).is_some_and(|bits| bits & libc::PROT_EXEC as u64 != 0)
}

fn is_entering(call: &str) -> bool {
    // libc may sign-extend the command.
    argument(call, libc::SYS_ioctl, 1).is_some_and(|command| kfd::begins(command as u32))
}

/// An argument of that call in /proc/PID/syscall: the call's number and its arguments in hexadecimal, `running`, or -1
/// outside of calls.
fn argument(call: &str, number: i64, index: usize) -> Option<u64> {
    let mut words = call.split_whitespace();
    (words.next()?.parse() == Ok(number)).then_some(())?;
    u64::from_str_radix(words.nth(index)?.trim_start_matches("0x"), 16).ok()
}

/// `(child, parent)` of every process.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, stat(pid)?.split(' ').nth(1)?.parse().ok()?))
        })
        .collect()
}

/// State letter of a process (`T`: stopped by a signal); `None` if it has ended.
pub(crate) fn state(pid: u32) -> Option<char> {
    stat(pid)?.chars().next()
}

/// `/proc/PID/stat` after the name, which may hold anything but ends at the last parenthesis.
fn stat(pid: u32) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_mappings_are_told_as_such() {
        assert!(is_executable_mapping(
            "9 0x7f0000000000 0x1000 0x5 0x812 0x3 0x2000 0x7ffd 0x7f01\n"
        ));
        assert!(!is_executable_mapping(
            "9 0x7f0000000000 0x1000 0x1 0x812 0x3 0x2000 0x7ffd 0x7f01\n"
        ));
        assert!(!is_executable_mapping(
            "10 0x7f0000000000 0x1000 0x5 0x812 0x3 0x2000 0x7ffd 0x7f01\n"
        ));
        for other in ["running\n", "-1 0x7ffd 0x7f01\n", "", "9\n"] {
            assert!(!is_executable_mapping(other), "{other}");
        }
    }

    #[test]
    fn only_the_first_use_of_the_kfd_is_told_as_such() {
        // GET_VERSION, sign-extended; WAIT_EVENTS; a console's KDGETMODE; another call.
        assert!(is_entering(
            "16 0x3 0xffffffff80084b01 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n"
        ));
        for other in [
            "16 0x3 0xc0184b0c 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
            "16 0x0 0x4b3b 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
            "9 0x3 0x80084b01 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
            "running\n",
        ] {
            assert!(!is_entering(other), "{other}");
        }
    }

    #[test]
    fn a_hold_that_is_over_is_forgotten() {
        let mut watched = Watched::default();
        watched.hear(Word::Held as u8, 7);
        watched.hear(Word::Held as u8, 8);
        watched.hear(Word::Free as u8, 7);
        watched.hear(Word::Own as u8, 9);
        assert_eq!((watched.held, watched.own), ([8].into(), [9].into()));
    }
}
