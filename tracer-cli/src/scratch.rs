//! A temporary folder for a trace that is not kept. It is removed when the process that created it exits, even if that process is
//! killed.
//!
//! A child process waits for the end of a pipe that the recorder keeps open, and then removes the folder. A folder can't be
//! unlinked before it is filled, and memory (a detached tmpfs) has no room for a long trace.

use std::{
    fs,
    io::{self, Read},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use anyhow::Context;
use tempfile::TempDir;

/// A folder, and the pipe whose end tells the child to exit.
#[derive(Debug)]
pub struct Scratch {
    /// Declared before the pipe, and so dropped first: the child then finds nothing to do.
    dir: TempDir,
    _alive: io::PipeWriter,
}

impl Scratch {
    /// Creates a folder, and the child that removes it.
    ///
    /// # Errors
    /// Returns an error if the folder, the pipe or the process can't be created.
    ///
    /// # Safety
    /// The process must have one thread only, because the child runs Rust code after a fork.
    pub unsafe fn create() -> anyhow::Result<Self> {
        let dir = TempDir::with_prefix("tracer-verify-").context("creating a folder for the trace")?;
        let (reader, alive) = io::pipe().context("creating a pipe")?;
        // SAFETY: by this function's contract there is one thread only, so no other thread can hold a lock.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()).context("starting a process"),
            0 => {
                remove_at_end(reader, dir.path());
                // SAFETY: ends the child without running the exit handlers or destructors of the process that it is a copy of.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Self { dir, _alive: alive }),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Runs in the child: waits until the process that it was forked from has exited, and ignores the terminal's signals.
fn remove_at_end(mut pipe: io::PipeReader, dir: &Path) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"tracer-scratch".as_ptr()) };
    let dir = PathBuf::from(dir);
    // A reader of the recorder's output must not wait for this process, nor must the guardian, which waits for the end of another
    // pipe. This process must not block its working directory, either.
    close_all_but(pipe.as_raw_fd());
    let _ = std::env::set_current_dir("/");
    let mut byte = [0];
    while pipe.read(&mut byte).is_ok_and(|n| n > 0) {}
    // The folder is usually gone by now. Removal follows no links (std removes by descriptors).
    if dir.is_absolute() {
        let _ = fs::remove_dir_all(dir);
    }
}

/// Closes every descriptor except one.
fn close_all_but(kept: i32) {
    let kept = kept.unsigned_abs();
    if kept > 0 {
        // SAFETY: this process uses none of these descriptors.
        unsafe { libc::syscall(libc::SYS_close_range, 0, kept - 1, 0) };
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0) };
}
