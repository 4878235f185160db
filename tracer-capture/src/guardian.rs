//! A process that outlives the recorder: whatever kills the recorder, nothing that it stopped stays stopped.
//!
//! The recorder names traced processes through a pipe. When the pipe closes, because the recorder ended in any way,
//! the guardian lets those of them go on that are stopped, and ends. The eBPF programs are gone by then: their
//! descriptors were the recorder's.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read, Write},
    os::fd::OwnedFd,
};

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

    /// Names a process that may be stopped by the recorder from now on.
    pub fn watch(&mut self, pid: u32) {
        if let Err(error) = self.pipe.write_all(&pid.to_ne_bytes()) {
            log::warn!("the guardian is gone ({error}): a recorder that is killed may leave processes stopped");
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
    let mut watched = BTreeSet::new();
    let mut pid = [0; 4];
    while pipe.read_exact(&mut pid).is_ok() {
        watched.insert(u32::from_ne_bytes(pid));
    }
    // A stop that was on its way when the recorder died may still arrive.
    for pause_ms in [0, 20, 200] {
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        release_stopped(&mut watched);
    }
}

fn release_stopped(watched: &mut BTreeSet<u32>) {
    let parents = parents();
    // Children that were forked after the last message are descendants of those named.
    loop {
        let more: Vec<u32> = parents
            .iter()
            .filter(|(c, p)| watched.contains(p) && !watched.contains(c))
            .map(|&(c, _)| c)
            .collect();
        if more.is_empty() {
            break;
        }
        watched.extend(more);
    }
    for &pid in watched.iter().filter(|&&pid| state(pid) == Some('T')) {
        let _ = sys::signal(pid, libc::SIGCONT);
    }
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
