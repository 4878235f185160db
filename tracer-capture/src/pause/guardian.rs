//! Guardians: two processes that outlive the recorder. Whichever process dies, no process that the recorder paused stays stopped.
//!
//! Both watch the recorder's signs of life, in the map of paused processes that it shares with them. When these stop, because the
//! recorder has exited in any way or is stopped itself, the guardians resume the processes that the entries name. By then the eBPF
//! programs pause no process any more: they check the same signs. The two guardians watch each other, too: one that dies is
//! replaced, so that no single kill, and no two in a row, leave a paused process alone. If the recorder dies together with both
//! guardians, the next tracer finds the paused processes (`pause/left.rs`).
//!
//! A guardian ignores the terminal's signals, keeps nothing of the recorder open except what it was sent, and exits once the recorder has
//! exited and no entry is left.

mod cgroup;

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::{
    CaptureError,
    confined::Channel,
    kernel::uprobe_events,
    pause::{entries::Entries, left},
    sys,
};

/// The time for which a recorder that has not exited may give no sign of life. A busy machine delays the recorder, and to resume a
/// paused process would lose what the recorder was about to do for it. The programs stop pausing before, at `STALE_NS`.
const SILENCE_NS: u64 = 1_000_000_000;
/// The interval of a guardian's rounds.
const ROUND: Duration = Duration::from_millis(50);
/// The time for which a round may keep resuming processes.
const RELEASE: Duration = Duration::from_millis(500);
/// The number of rounds without an entry that suffice after the recorder's exit. The guardian then ends the heartbeat, so that
/// programs pause no more processes. A pause that began just before shows in a moment.
const QUIET_ROUNDS: u32 = 8;
/// How often a guardian tries to remove what is in use.
const REMOVALS: u32 = 40;
/// The number of rounds after the recorder's exit that suffice in any case.
const MOST_ROUNDS: u32 = 200;

/// The recorder's ends of the connections to the guardians.
#[derive(Debug)]
pub struct Guardian {
    channels: [Channel; 2],
}

impl Guardian {
    /// Forks the guardians.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if a process or socket can't be created.
    ///
    /// # Safety
    /// The calling process must have one thread only, since the child runs Rust code after a fork.
    pub unsafe fn start() -> Result<Self, CaptureError> {
        let pair = || Channel::pair().map_err(|error| CaptureError::system("a socket", error));
        let [(own_first, first), (own_second, second)] = [pair()?, pair()?];
        // SAFETY: the process has one thread, by this function's contract, so no other thread can hold a lock.
        match unsafe { libc::fork() } {
            -1 => Err(CaptureError::system("fork", io::Error::last_os_error())),
            0 => {
                drop((own_first, own_second));
                become_guardian();
                // SAFETY: this process has one thread.
                unsafe { guard_as_two(first, second) };
                // SAFETY: exits the child without running the recorder's exit handlers.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Self {
                channels: [own_first, own_second],
            }),
        }
    }

    /// Shares the map of paused processes with the guardians. Before that, no process may be paused. In the end the guardians
    /// remove what is `left` behind.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if a guardian is gone.
    pub fn share(&self, map: BorrowedFd<'_>, left: Left<'_>) -> Result<(), CaptureError> {
        let failed = |error| CaptureError::system("sending the map of paused processes to the guardian", error);
        let mut removed = Removed::default();
        let mut descriptors = vec![map];
        match left {
            Left::Nothing => {}
            Left::Pin(pin) => removed.pin = Some(pin.to_owned()),
            Left::Uprobes(control, group) => {
                removed.group = Some(group.to_owned());
                descriptors.push(control);
            }
            Left::Instance {
                control,
                instances,
                name,
            } => {
                (removed.group, removed.instance) = (Some(name.to_owned()), Some(name.to_owned()));
                descriptors.extend([control, instances]);
            }
        }
        let send = |channel: &Channel| channel.send(&removed, &descriptors);
        self.channels.iter().try_for_each(send).map_err(failed)
    }
}

/// What a recorder that is killed leaves behind.
#[derive(Clone, Copy, Debug)]
pub enum Left<'a> {
    /// Nothing.
    Nothing,
    /// The map's name in BPF's file system.
    Pin(&'a Path),
    /// Definitions of uprobes in tracefs: the file that takes their removal, and their group.
    Uprobes(BorrowedFd<'a>, &'a str),
    /// An instance of tracefs, and definitions of uprobes in a group of the same name.
    Instance {
        /// The file that takes the removal of the definitions.
        control: BorrowedFd<'a>,
        /// The folder of instances.
        instances: BorrowedFd<'a>,
        /// The name.
        name: &'a str,
    },
}

/// What the guardians remove in the end.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Removed {
    pin: Option<PathBuf>,
    /// The file that takes its removal comes beside the message.
    group: Option<String>,
    /// The folder of instances comes after that file.
    instance: Option<String>,
}

/// Turns the process into a guardian, except for its work.
fn become_guardian() {
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGTSTP,
        libc::SIGCHLD,
    ] {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"tracer-guardian".as_ptr()) };
    // Keeping the recorder's standard streams open would keep a reader of its output waiting.
    for fd in 0..3 {
        // SAFETY: the descriptors are plain descriptors of this process, which uses none of them.
        unsafe { libc::close(fd) };
    }
    cgroup::enter();
}

/// Forks the second guardian, and works beside it.
///
/// # Safety
/// The process must have one thread only.
unsafe fn guard_as_two(first: Channel, second: Channel) {
    let parent = getpid();
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            drop(first);
            Guard::new(second, Some(parent)).run();
        }
        child => {
            drop(second);
            Guard::new(first, Pid::from_raw(child.max(0))).run();
        }
    }
}

/// A guardian at work.
struct Guard {
    /// The connection to the recorder, which the recorder's exit closes, however it exits.
    recorder: Channel,
    recorder_exited: bool,
    /// The other guardian; `None` if there is none.
    other: Option<OwnedFd>,
    shared: Option<Shared>,
}

/// The data that the recorder shares.
struct Shared {
    entries: Entries,
    left: Removed,
    uprobes: Option<File>,
    instances: Option<File>,
}

impl Guard {
    fn new(recorder: Channel, other: Option<Pid>) -> Self {
        Self {
            recorder,
            recorder_exited: false,
            other: open(other),
            shared: None,
        }
    }

    fn run(mut self) {
        let (mut rounds, mut quiet) = (0, 0);
        while !(self.recorder_exited && (self.shared.is_none() || quiet >= QUIET_ROUNDS || rounds >= MOST_ROUNDS)) {
            if self.recorder_exited {
                std::thread::sleep(ROUND);
                rounds += 1;
            } else {
                self.listen();
            }
            let Some(shared) = &self.shared else { continue };
            if self.recorder_exited {
                shared.entries.stop_beating();
            }
            if self.recorder_exited || !shared.entries.has_beaten_within(SILENCE_NS, sys::monotonic_ns()) {
                left::release(&shared.entries, RELEASE);
                let is_empty = shared.entries.by_process().is_empty();
                quiet = if is_empty { quiet + 1 } else { 0 };
            }
            if !self.recorder_exited {
                self.replace_other();
            }
        }
        if let Some(shared) = self.shared {
            // Each may be gone already.
            if let Some(pin) = shared.left.pin {
                let _ = fs::remove_file(pin);
            }
            // Its definitions are in use while it exists.
            if let (Some(instances), Some(name)) = (shared.instances, shared.left.instance) {
                // Files of it may be open for a moment.
                for _ in 0..REMOVALS {
                    match uprobe_events::remove_instance(&instances, &name) {
                        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(ROUND),
                        _ => break,
                    }
                }
            }
            if let (Some(control), Some(group)) = (shared.uprobes, shared.left.group) {
                let _ = uprobe_events::remove_group(&control, &group);
            }
        }
        cgroup::leave();
    }

    /// Waits for a message from the recorder, or for its exit, for one round.
    fn listen(&mut self) {
        match self.recorder.receive_until(Instant::now() + ROUND) {
            Ok(mut message) => {
                let left = message.value();
                let mut descriptors = message.descriptors.drain(..);
                if let (Some(map), Ok(left)) = (descriptors.next(), left)
                    && let Ok(entries) = Entries::new(map)
                {
                    let mut file = || descriptors.next().map(File::from);
                    let (uprobes, instances) = (file(), file());
                    self.shared = Some(Shared {
                        entries,
                        left,
                        uprobes,
                        instances,
                    });
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => self.recorder_exited = true,
                io::ErrorKind::TimedOut => {}
                // Such an error does not show that the recorder exited, and returns at once.
                _ => std::thread::sleep(ROUND),
            },
        }
    }

    /// Forks another guardian if the other one is gone.
    fn replace_other(&mut self) {
        if self.shared.is_none() || self.other.as_ref().is_some_and(|other| !sys::has_ended(other)) {
            return;
        }
        let parent = getpid();
        // SAFETY: a guardian has one thread.
        let other = match unsafe { libc::fork() } {
            0 => Some(parent),
            child => Pid::from_raw(child.max(0)),
        };
        self.other = open(other);
    }
}

/// Opens a process by its id, to notice its exit.
fn open(pid: Option<Pid>) -> Option<OwnedFd> {
    pidfd_open(pid?, PidfdFlags::empty()).ok()
}

/// Returns a map's descriptor, as the guardians take it.
pub(crate) fn descriptor(map: &aya::maps::Map) -> Result<BorrowedFd<'_>, CaptureError> {
    match map {
        aya::maps::Map::Array(data) => Ok(data.fd().as_fd()),
        _ => Err(CaptureError::Missing("PAUSES")),
    }
}
