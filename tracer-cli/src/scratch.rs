//! A folder for a trace that nobody keeps. It goes with the process that made it, also when that is killed.
//!
//! A child process waits for the end of a pipe that the recorder holds open, and then removes the folder. A folder can't
//! be unlinked before it is filled, and memory (a detached tmpfs) has no room for a long trace.

use std::{
    fs,
    io::{self, Read},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::Mutex,
};

use anyhow::Context;
use tempfile::TempDir;

/// The folder of this process, once [`prepare`] has made it.
static PREPARED: Mutex<Option<Scratch>> = Mutex::new(None);

/// A folder, and the pipe whose end tells the child that it may go.
#[derive(Debug)]
pub struct Scratch {
    /// Before the pipe: the child then finds nothing to do.
    dir: TempDir,
    _alive: io::PipeWriter,
}

/// Makes the folder of this process, for [`Scratch::take`], and the child that removes it.
///
/// # Errors
/// If no folder, pipe or process can be had.
///
/// # Safety
/// The process must have one thread only, since the child runs Rust code after a fork.
pub unsafe fn prepare() -> anyhow::Result<()> {
    let dir = TempDir::with_prefix("tracer-verify-").context("creating a folder for the trace")?;
    let (reader, alive) = io::pipe().context("creating a pipe")?;
    // SAFETY: one thread only, by this function's contract, so no lock can be held by another one.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()).context("starting a process"),
        0 => {
            remove_at_end(reader, dir.path());
            // SAFETY: ends the child without running exit handlers or destructors of the process that it copies.
            unsafe { libc::_exit(0) }
        }
        _ => {}
    }
    let scratch = Scratch { dir, _alive: alive };
    *PREPARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(scratch);
    Ok(())
}

impl Scratch {
    /// The folder that [`prepare`] made.
    ///
    /// # Errors
    /// If it made none.
    pub fn take() -> anyhow::Result<Self> {
        let mut prepared = PREPARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        prepared.take().context("there is no folder for the trace")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// The child: waits for the end of the process that it was forked from, whatever the terminal's signals say.
fn remove_at_end(mut pipe: io::PipeReader, dir: &Path) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: SIG_IGN is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the name is a C string that lives until the call returns.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"tracer-scratch".as_ptr()) };
    let dir = PathBuf::from(dir);
    // Neither a reader of the recorder's output nor the guardian, which waits for the end of another pipe, may wait for this
    // process. The folder need not be in anybody's way, either.
    close_all_but(pipe.as_raw_fd());
    let _ = std::env::set_current_dir("/");
    let mut byte = [0];
    while pipe.read(&mut byte).is_ok_and(|n| n > 0) {}
    // As a rule it is gone by now. Removal follows no links (std removes by descriptors).
    if dir.is_absolute() {
        let _ = fs::remove_dir_all(dir);
    }
}

/// Closes every descriptor but one.
fn close_all_but(kept: i32) {
    let kept = kept.unsigned_abs();
    if kept > 0 {
        // SAFETY: this process uses none of them.
        unsafe { libc::syscall(libc::SYS_close_range, 0, kept - 1, 0) };
    }
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0) };
}
