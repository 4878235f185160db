//! The process that forks readers and parsers, and the recorder's side of it.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use nix::errno::Errno;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid},
};
use serde::{Deserialize, Serialize};

use super::{channel::Channel, parser, reader, sandbox};
use crate::{CaptureError, sys};

/// The maximum time of a fork. The spawner reads nothing foreign, so that only a very busy machine delays it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kind of a forked process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Copies bytes.
    Reader,
    /// Parses bytes.
    Parser,
}

/// The recorder's connection to the spawner. The spawner exits when the connection closes.
#[derive(Debug)]
pub struct Spawner {
    control: Mutex<Control>,
    /// The process id, for reports only.
    pub pid: u32,
}

#[derive(Debug)]
struct Control {
    channel: Channel,
    /// The number of the last order. It keeps an answer that came too late for its own order from being taken for the next one's.
    last: u64,
}

/// An order to the spawner: the order's number and the kind of process to fork.
type Order = (u64, Kind);
/// The result of an order: its number, and the process id or the error number.
type Done = (u64, Result<u32, i32>);

/// The recorder's handle of a reader or parser. The process exits when the handle is dropped, or as soon as the kernel lets it.
#[derive(Debug)]
pub struct Child {
    /// The connection to the process.
    pub channel: Channel,
    /// The process: readable once it has exited.
    pub pidfd: OwnedFd,
    /// The process id, for reports only.
    pub pid: u32,
}

impl Child {
    /// Kills the process. A process that waits for a file system exits when the file system lets it.
    pub fn kill(&self) {
        // The process may have exited already.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Returns whether the process has exited.
    pub fn has_ended(&self) -> bool {
        sys::has_ended(&self.pidfd)
    }
}

impl Spawner {
    /// Forks the spawner.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if the process or the socket can't be created, or the process can't be confined.
    ///
    /// # Safety
    /// No other thread may hold a lock that Rust's standard library needs, since the child runs Rust code after a fork: call it
    /// while the process has one thread.
    pub unsafe fn start() -> Result<Self, CaptureError> {
        let failed = |e| CaptureError::system("starting the readers", e);
        let (control, remote) = Channel::pair().map_err(failed)?;
        let recorder = getpid();
        // SAFETY: by this function's contract, no other thread holds a lock.
        match unsafe { libc::fork() } {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => {
                drop(control);
                serve(remote, recorder);
                exit()
            }
            pid => {
                drop(remote);
                let confined = control
                    .receive_until(Instant::now() + PATIENCE)
                    .and_then(|message| message.value::<Result<(), String>>());
                confined.map_err(failed)?.map_err(|e| failed(io::Error::other(e)))?;
                let control = Mutex::new(Control {
                    channel: control,
                    last: 0,
                });
                let pid = pid.unsigned_abs();
                Ok(Self { control, pid })
            }
        }
    }

    /// Forks a reader or parser.
    ///
    /// # Errors
    /// Fails with `UnexpectedEof` if the spawner is gone, and with the errors of a fork.
    pub fn spawn(&self, kind: Kind) -> io::Result<Child> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + PATIENCE;
        control.last += 1;
        let order: Order = (control.last, kind);
        control.channel.send_until(&order, &[], deadline)?;
        let (message, forked) = loop {
            let message = control.channel.receive_until(deadline)?;
            let (number, forked) = message.value::<Done>()?;
            if number == control.last {
                break (message, forked);
            }
        };
        drop(control);
        let pid = forked.map_err(io::Error::from_raw_os_error)?;
        let [socket, pidfd] =
            <[OwnedFd; 2]>::try_from(message.descriptors).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let channel = Channel::new(socket);
        Ok(Child { channel, pidfd, pid })
    }
}

/// Runs the spawner: forks as ordered until the recorder is gone.
fn serve(control: Channel, recorder: Pid) {
    // Only the recorder handles the terminal's signals.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    name(c"tracer-spawner");
    let Ok(control) = keep_only(control) else { return };
    let usual = sys::niceness();
    // Readers inherit this: what they are asked for may be gone a moment later, and they only copy.
    sys::run_first();
    // The exit of the parent ends the spawner, too, because another process may have inherited the recorder's end of the socket.
    // This comes after the ids have changed, because their change would clear the setting.
    let confined = sandbox::confine_spawner().and_then(|()| sandbox::end_with_parent(recorder));
    let sent = control.send(&confined.as_ref().map_err(io::Error::to_string), &[]);
    if confined.is_err() || sent.is_err() {
        return;
    }
    let own = getpid();
    let mut children: Vec<OwnedFd> = Vec::new();
    loop {
        let mut watched = vec![PollFd::new(&control, PollFlags::IN)];
        watched.extend(children.iter().map(|child| PollFd::new(child, PollFlags::IN)));
        let _ = poll(&mut watched, None);
        // A readable pidfd refers to a process that has exited. Only waiting for it gives its id back to the kernel.
        children.retain(|child| {
            let gone = sys::has_ended(child);
            if gone {
                let _ = waitid(
                    WaitId::PidFd(child.as_fd()),
                    WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                );
            }
            !gone
        });
        let order = match control.try_receive() {
            Ok(Some(message)) => message.value::<Order>(),
            Ok(None) => continue,
            Err(_) => return,
        };
        let Ok((number, kind)) = order else { return };
        let forked = fork(kind, own, usual);
        let done = |result| -> Done { (number, result) };
        let sent = match &forked {
            Ok(child) => control.send(&done(Ok(child.pid)), &[child.channel.as_fd(), child.pidfd.as_fd()]),
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                control.send(&done(Err(code)), &[])
            }
        };
        if sent.is_err() {
            return;
        }
        children.extend(forked.ok().map(|child| child.pidfd));
    }
}

/// `usual` is the niceness of a process that is not in a hurry.
fn fork(kind: Kind, spawner: Pid, usual: i32) -> io::Result<Child> {
    let (channel, theirs) = Channel::pair()?;
    // SAFETY: the spawner has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(channel);
            if let Ok(channel) = keep_only(theirs)
                && sandbox::end_with_parent(spawner).is_ok()
            {
                work(kind, usual, &channel);
            }
            exit()
        }
        pid => {
            // No process has waited for the child yet, so the id is still the child's.
            let child = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
            let pidfd = pidfd_open(child, PidfdFlags::empty())?;
            let pid = pid.unsigned_abs();
            Ok(Child { channel, pidfd, pid })
        }
    }
}

fn work(kind: Kind, usual: i32, channel: &Channel) {
    match kind {
        Kind::Reader => {
            name(c"tracer-reader");
            if sandbox::confine_reader().is_ok() {
                reader::serve(channel);
            }
        }
        Kind::Parser => {
            name(c"tracer-parser");
            sys::set_niceness(usual);
            if sandbox::confine_parser().is_ok() {
                parser::serve(channel);
            }
        }
    }
}

fn name(name: &std::ffi::CStr) {
    // The name only helps people, so an error does not matter.
    let _ = rustix::thread::set_name(name);
}

/// Closes every descriptor except the channel's, which it moves, and redirects the standard streams to a dead pipe: a file that is
/// opened later must not become one of them.
fn keep_only(channel: Channel) -> io::Result<Channel> {
    /// The first descriptor above the standard streams.
    const FIRST: RawFd = 3;
    let socket = rustix::io::fcntl_dupfd_cloexec(channel.as_fd(), FIRST)?;
    // The old descriptor is closed with the others below.
    std::mem::forget(channel);
    let own = socket.as_raw_fd().unsigned_abs();
    for (first, last) in [(0, own - 1), (own + 1, u32::MAX)] {
        // SAFETY: this process was forked for the work that follows, and uses none of these descriptors.
        Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    }
    // A pipe without a writer: reading from it returns no bytes, writing to it fails.
    let (nothing, writer) = rustix::pipe::pipe()?;
    drop(writer);
    for fd in 0..FIRST {
        if fd != nothing.as_raw_fd() {
            // SAFETY: the descriptor is this process's own, and is duplicated to a number that nothing uses.
            unsafe { libc::dup2(nothing.as_raw_fd(), fd) };
        }
    }
    std::mem::forget(nothing);
    Ok(Channel::new(socket))
}

/// Exits a forked process without running the recorder's exit handlers.
fn exit() -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(0) }
}
