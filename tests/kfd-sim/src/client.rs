//! The client: the program that uses the simulated devices, and the processes it leaves behind.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};

use crate::descriptors::{self, Channel};

/// The client's process id, for the signal handler; 0 before the client runs and after it has exited.
static CLIENT: AtomicI32 = AtomicI32::new(0);

/// Forwards a signal to the client, unless the signal comes from the terminal, which signals the client as well.
extern "C" fn forward(signal: libc::c_int, info: *const libc::siginfo_t, _context: *const libc::c_void) {
    let pid = CLIENT.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a valid `siginfo_t`, as the handler is installed with `SA_SIGINFO`.
    let from_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    if pid > 0 && !from_terminal {
        // SAFETY: kill is async-signal-safe and touches no memory.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Runs the client until it exits. Returns its exit code as a shell would: 128 + n for signal n. `serve` is called with the
/// connection to the client's filter as soon as it runs.
///
/// Must be called from the main thread, because the client is killed when the thread that started it exits.
pub fn run(command: &[OsString], root: Option<&Path>, serve: impl FnOnce(Channel) -> io::Result<()>) -> Result<u8> {
    // Orphans of the client become children of this process, which waits for them too.
    // SAFETY: prctl takes only integers here.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let (program, args) = command.split_first().context("no command to run")?;
    let mut child = Command::new(program);
    child.args(args);
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let root = root.map(|root| CString::new(root.as_os_str().as_bytes())).transpose()?;
    let parent = std::process::id() as i32;
    let channel = Channel::new()?;
    let end = channel.client_end();
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls on prepared strings.
    unsafe {
        child.pre_exec(move || {
            prepare(parent, root.as_deref(), &folder)?;
            descriptors::install(end);
            Ok(())
        });
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        forward_signal(signal)?;
    }
    let child = child
        .spawn()
        .with_context(|| format!("run {}", Path::new(program).display()))?;
    CLIENT.store(child.id() as i32, Ordering::Relaxed);
    serve(channel)?;
    Ok(exit_code(wait_for_all(child.id() as i32)?))
}

fn forward_signal(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid sigaction: an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = forward as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `action` is a valid sigaction; `forward` is async-signal-safe and has the type that `SA_SIGINFO` requires.
    if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Prepares the child before exec: it dies with the simulator, and it sees the other root.
fn prepare(parent: i32, root: Option<&std::ffi::CStr>, folder: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: prctl takes only integers here.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: getppid takes no arguments.
    if unsafe { libc::getppid() } != parent {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    if let Some(root) = root {
        // SAFETY: `root` is NUL-terminated.
        if unsafe { libc::chroot(root.as_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `folder` and the literal are NUL-terminated.
        if unsafe { libc::chdir(folder.as_ptr()) != 0 && libc::chdir(c"/".as_ptr()) != 0 } {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Waits for the client and for every descendant that it leaves behind. Returns the client's status.
fn wait_for_all(client: i32) -> io::Result<ExitStatus> {
    let mut result = None;
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable.
        let pid = unsafe { libc::wait(&raw mut status) };
        if pid == client {
            CLIENT.store(0, Ordering::Relaxed);
            result = Some(ExitStatus::from_raw(status));
        }
        if pid < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ECHILD) => return result.ok_or(error),
                _ => return Err(error),
            }
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_a_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(exit_code(ExitStatus::from_raw(libc::SIGKILL)), 137);
        assert_eq!(exit_code(ExitStatus::from_raw(libc::SIGSEGV | 0x80)), 139);
    }
}
