//! Guardians: two processes that outlive the recorder. Whatever dies, nothing that it paused stays stopped.
//!
//! Both watch the recorder's signs of life, in the map of paused processes that it shares with them. When these stop, because
//! the recorder has exited in any way or is stopped itself, they resume what the entries name. By then the eBPF programs
//! pause nobody any more: they look at the same signs. The two watch each other, too: one that dies is replaced, so that no
//! single kill, and no two in a row, leave a paused process alone. What dies together with both is found by the next tracer
//! (`pause/left.rs`).
//!
//! A guardian is deaf to the terminal's signals, holds nothing of the recorder's but its map, and exits once the recorder has
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

/// How long a recorder that has not exited may give no sign of life. A busy machine delays it: what it was about to do for a paused
/// process would be lost. Programs pause nobody meanwhile.
const SILENCE_NS: u64 = 1_000_000_000;
/// How often a guardian looks up.
const ROUND: Duration = Duration::from_millis(50);
/// How long a round may go on resuming.
const RELEASE: Duration = Duration::from_millis(500);
/// After the recorder's exit: how many rounds without an entry are enough. Programs pause nobody 200 ms after its last sign
/// of life, and a pause that began just before shows in a moment.
const QUIET_ROUNDS: u32 = 8;
/// After the recorder's exit: how many rounds are enough in any case.
const MOST_ROUNDS: u32 = 200;
/// The recorder's end.
#[derive(Debug)]
pub struct Guardian {
    sockets: [OwnedFd; 2],
}

impl Guardian {
    /// Forks the guardians.
    ///
    /// # Errors
    /// [`CaptureError::System`] if no process or socket can be had.
    ///
    /// # Safety
    /// The calling process must have one thread only, since the child runs Rust code after a fork.
    pub unsafe fn start() -> Result<Self, CaptureError> {
        let pair = || {
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| CaptureError::system("a socket", io::Error::from(error)))
        };
        let [(own_first, first), (own_second, second)] = [pair()?, pair()?];
        // SAFETY: one thread only, by this function's contract, so no lock can be held by another one.
        match unsafe { libc::fork() } {
            -1 => Err(CaptureError::system("fork", io::Error::last_os_error())),
            0 => {
                drop((own_first, own_second));
                become_guardian();
                // SAFETY: this process has one thread.
                unsafe { guard_as_two(first, second) };
                // SAFETY: ends the child without running the recorder's exit handlers.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Self {
                sockets: [own_first, own_second],
            }),
        }
    }

    /// Shares the map of paused processes. Before that nobody may be paused. `pin`: its name in BPF's file system, which the
    /// guardians remove in the end.
    ///
    /// # Errors
    /// [`CaptureError::System`] if a guardian is gone.
    pub fn share(&self, map: BorrowedFd<'_>, pin: Option<&Path>) -> Result<(), CaptureError> {
        let name = pin.map_or(b"".as_slice(), |path| path.as_os_str().as_bytes());
        for socket in &self.sockets {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut message = SendAncillaryBuffer::new(&mut space);
            let descriptors = [map];
            // The space is for one descriptor.
            let _ = message.push(SendAncillaryMessage::ScmRights(&descriptors));
            let text = [IoSlice::new(b"/"), IoSlice::new(name)];
            sendmsg(socket, &text, &mut message, SendFlags::NOSIGNAL)
                .map_err(|error| CaptureError::system("sending the map of paused processes to the guardian", io::Error::from(error)))?;
        }
        Ok(())
    }
}

/// What a guardian is but for its work.
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
        // SAFETY: plain descriptors of this process, which uses none of them.
        unsafe { libc::close(fd) };
    }
    cgroup::enter();
}

/// Makes the second guardian, and works beside it.
///
/// # Safety
/// The process must have one thread only.
unsafe fn guard_as_two(first: OwnedFd, second: OwnedFd) {
    let parent = std::process::id();
    // SAFETY: one thread only.
    match unsafe { libc::fork() } {
        0 => {
            drop(first);
            Guard::new(second, parent).run();
            // SAFETY: ends the child without running anybody's exit handlers.
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
    /// Closed by the recorder's exit, however it exits.
    recorder: OwnedFd,
    recorder_exited: bool,
    /// The other guardian; `None` if there is none.
    other: Option<OwnedFd>,
    shared: Option<Shared>,
}

/// What the recorder shares.
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

    /// Waits for a word of the recorder's, or its exit, for a round.
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
        // Behind the first byte, which is there so that no message is empty.
        let name = text.get(1..bytes).filter(|name| !name.is_empty());
        if let Some(entries) = map.and_then(|map| Entries::new(map).ok()) {
            let pin = name.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name)));
            self.shared = Some(Shared { entries, pin });
        }
    }

    /// If the other guardian is gone, makes another one.
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

/// A process by its id, to see when it exits.
fn open(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A map as the guardians take it.
pub(crate) fn descriptor(map: &aya::maps::Map) -> Result<BorrowedFd<'_>, CaptureError> {
    match map {
        aya::maps::Map::Array(data) => Ok(data.fd().as_fd()),
        _ => Err(CaptureError::Missing("PAUSES")),
    }
}
