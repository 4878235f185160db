//! A process with an id that the caller chooses, to reuse the id of a process that has just exited.
//!
//! `same-pid PID stops` creates a child with that id, which stops itself and exits once it is continued. `same-pid PID maps FILE`
//! creates a child that maps the file executable, and unmaps it, until it is killed.
//!
//! The id must be free; the program waits up to 5 s for it. It exits after the child.

use std::{
    env,
    fs::File,
    io,
    os::fd::AsRawFd,
    process::ExitCode,
    ptr,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [pid, "stops"] => make(pid, stop),
        [pid, "maps", path] => File::open(path).and_then(|file| make(pid, || map(&file))),
        _ => Err(io::Error::other("usage: same-pid PID stops | same-pid PID maps FILE")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("same-pid: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Creates a child with this id that runs `child`, and waits for its exit.
fn make(pid: &str, child: impl Fn()) -> io::Result<()> {
    let pid: libc::pid_t = pid.parse().map_err(io::Error::other)?;
    let began = Instant::now();
    let made = loop {
        match clone_as(pid) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            made => break made?,
        }
    };
    if made == 0 {
        child();
        // SAFETY: this exits the child.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    let waited = unsafe { libc::waitpid(made, &raw mut status, 0) };
    if waited == made {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Forks a child like `fork`, with the given id.
fn clone_as(pid: libc::pid_t) -> io::Result<libc::pid_t> {
    let wanted = [pid];
    // SAFETY: all-zero is a valid value of this structure of numbers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.exit_signal = libc::SIGCHLD as u64;
    args.set_tid = wanted.as_ptr().expose_provenance() as u64;
    args.set_tid_size = 1;
    // SAFETY: no memory is shared, so this is a fork; the process has one thread; the arguments live through the call.
    let made = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    libc::pid_t::try_from(made).map_err(io::Error::other)
}

fn stop() {
    // SAFETY: the arguments are plain integers; the id is the one that `getpid` returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

fn map(file: &File) {
    loop {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: a new mapping at an unused address that the kernel chooses.
        unsafe {
            let at = libc::mmap(
                ptr::null_mut(),
                4096,
                protection,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            );
            libc::munmap(at, 4096);
        }
    }
}
