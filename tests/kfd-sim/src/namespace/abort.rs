//! Aborts the FUSE connection when the simulator exits, however that happens.
//!
//! A process that maps a file which it serves itself cannot exit: the kernel writes the mapping back first, and waits for an answer
//! that a dying process does not give. So a child process aborts the connection as soon as this process's main thread has exited
//! (fusectl, Documentation/filesystems/fuse.rst).

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::mounts::{mount_fusectl, unmount};

/// The signal that the child receives when the main thread exits. It has no other sender.
const ENDED: c_int = libc::SIGUSR2;

/// Watches the connection that serves `device`; `staging` is an empty folder. Must be called by the main thread.
pub fn on_exit(device: &File, staging: &Path) -> Result<()> {
    let connection = libc::minor(device.metadata()?.dev());
    mount_fusectl(staging).context("mount fusectl")?;
    let abort = OpenOptions::new()
        .write(true)
        .open(staging.join(connection.to_string()).join("abort"))
        .context("the FUSE connection's abort file");
    unmount(staging)?;
    let abort = abort?;
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    // Like fork(2), but without a signal when the child exits: a wait for children does not wait for this one.
    // SAFETY: the child makes only system calls, on its own values, and never returns.
    match unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } {
        0 => watch(parent, abort.as_raw_fd()),
        child => ensure!(child > 0, "fork: {}", io::Error::last_os_error()),
    }
    Ok(())
}

/// Runs the child.
fn watch(parent: libc::pid_t, abort: c_int) -> ! {
    // SAFETY: system calls on values of this frame; other threads of the parent do not exist here.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        let mut ended = std::mem::zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, ENDED);
        // No process may wait for this one through a pipe, or for the connection through its device.
        libc::dup2(abort, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, ENDED);
        // Otherwise the parent died before.
        if libc::getppid() == parent {
            let mut number = 0;
            libc::sigwait(&raw const ended, &raw mut number);
        }
        libc::write(0, b"1".as_ptr().cast(), 1);
        libc::_exit(0)
    }
}
