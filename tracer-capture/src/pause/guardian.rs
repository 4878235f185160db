//! Guardians: two processes that outlive the recorder. Whichever process dies, no process that the recorder paused stays stopped.
//!
//! Both watch the recorder's signs of life, in the map of paused processes that it shares with them. When these stop, because the
//! recorder has exited in any way or is stopped itself, the guardians resume the processes that the entries name. By then the eBPF
//! programs pause no process any more: they check the same signs. The two guardians watch each other, too: one that dies is
//! replaced, so that no single kill, and no two in a row, leave a paused process alone. If the recorder dies together with both
//! guardians, the next tracer finds the paused processes (`pause/left.rs`).
//!
//! A guardian ignores the terminal's signals, keeps nothing of the recorder open except its map, and exits once the recorder has
//! exited and no entry is left.

mod cgroup;

use std::{
    fs,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::{
    CaptureError,
    pause::{entries::Entries, left},
    sys,
};

/// The time for which a recorder that has not exited may give no sign of life. A busy machine delays the recorder, and to resume a
/// paused process would lose what the recorder was about to do for it. The programs pause no process in between.
const SILENCE_NS: u64 = 1_000_000_000;
/// The interval of a guardian's rounds.
const ROUND: Duration = Duration::from_millis(50);
/// The time for which a round may keep resuming processes.
const RELEASE: Duration = Duration::from_millis(500);
/// The number of rounds without an entry that suffice after the recorder's exit. Programs pause no process 200 ms after its last
/// sign of life, and a pause that began just before shows in a moment.
const QUIET_ROUNDS: u32 = 8;
/// The number of rounds after the recorder's exit that suffice in any case.
const MOST_ROUNDS: u32 = 200;
/// The recorder's end of the connection to the guardians.
#[derive(Debug)]
pub struct Guardian {
    sockets: [OwnedFd; 2],
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
        let pair = || {
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| CaptureError::system("a socket", io::Error::from(error)))
        };
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
                sockets: [own_first, own_second],
            }),
        }
    }

    /// Shares the map of paused processes with the guardians. Before that, no process may be paused. `pin` is the map's name in
    /// BPF's file system, which the guardians remove in the end.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if a guardian is gone.
    pub fn share(&self, map: BorrowedFd<'_>, pin: Option<&Path>) -> Result<(), CaptureError> {
        let name = pin.map_or(b"".as_slice(), |path| path.as_os_str().as_bytes());
        for socket in &self.sockets {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut message = SendAncillaryBuffer::new(&mut space);
            let descriptors = [map];
            // The space is large enough for one descriptor.
            let _ = message.push(SendAncillaryMessage::ScmRights(&descriptors));
            let text = [IoSlice::new(b"/"), IoSlice::new(name)];
            sendmsg(socket, &text, &mut message, SendFlags::NOSIGNAL).map_err(|error| {
                CaptureError::system(
                    "sending the map of paused processes to the guardian",
                    io::Error::from(error),
                )
            })?;
        }
        Ok(())
    }
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
unsafe fn guard_as_two(first: OwnedFd, second: OwnedFd) {
    let parent = std::process::id();
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            drop(first);
            Guard::new(second, parent).run();
            // SAFETY: exits the child without running any exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(second);
            Guard::new(first, u32::try_from(child).unwrap_or(0)).run();
        }
    }
}

/// A guardian at work.
struct Guard {
    /// The connection to the recorder, which the recorder's exit closes, however it exits.
    recorder: OwnedFd,
    recorder_exited: bool,
    /// The other guardian; `None` if there is none.
    other: Option<OwnedFd>,
    shared: Option<Shared>,
}

/// The data that the recorder shares.
struct Shared {
    entries: Entries,
    pin: Option<PathBuf>,
}

impl Guard {
    fn new(recorder: OwnedFd, other: u32) -> Self {
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
            if self.recorder_exited || !shared.entries.has_beaten_within(SILENCE_NS, sys::monotonic_ns()) {
                left::release(&shared.entries, RELEASE);
                let is_empty = shared.entries.by_process().is_empty();
                quiet = if is_empty { quiet + 1 } else { 0 };
            }
            if !self.recorder_exited {
                self.replace_other();
            }
        }
        if let Some(pin) = self.shared.and_then(|shared| shared.pin) {
            let _ = fs::remove_file(pin);
        }
        cgroup::leave();
    }

    /// Waits for a message from the recorder, or for its exit, for one round.
    fn listen(&mut self) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(ROUND.subsec_nanos()),
        };
        let ready = poll(&mut [PollFd::new(&self.recorder, PollFlags::IN)], Some(&timeout));
        if !ready.is_ok_and(|ready| ready > 0) {
            return;
        }
        let mut text = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.recorder,
            &mut [IoSliceMut::new(&mut text)],
            &mut message,
            RecvFlags::CMSG_CLOEXEC,
        );
        let bytes = received.map_or(0, |received| received.bytes);
        if bytes == 0 {
            self.recorder_exited = true;
            return;
        }
        let map = message.drain().find_map(|part| match part {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        // The name follows the first byte, which is there so that no message is empty.
        let name = text.get(1..bytes).filter(|name| !name.is_empty());
        if let Some(entries) = map.and_then(|map| Entries::new(map).ok()) {
            let pin = name.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name)));
            self.shared = Some(Shared { entries, pin });
        }
    }

    /// Forks another guardian if the other one is gone.
    fn replace_other(&mut self) {
        if self.shared.is_none() || self.other.as_ref().is_some_and(|other| !sys::has_ended(other)) {
            return;
        }
        let parent = std::process::id();
        // SAFETY: a guardian has one thread.
        match unsafe { libc::fork() } {
            0 => self.other = open(parent),
            child => self.other = open(u32::try_from(child).unwrap_or(0)),
        }
    }
}

/// Opens a process by its id, to notice its exit.
fn open(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns a map's descriptor, as the guardians take it.
pub(crate) fn descriptor(map: &aya::maps::Map) -> Result<BorrowedFd<'_>, CaptureError> {
    match map {
        aya::maps::Map::Array(data) => Ok(data.fd().as_fd()),
        _ => Err(CaptureError::Missing("PAUSES")),
    }
}
