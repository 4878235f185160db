//! System calls that have no safe wrapper in the libraries used.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{getpriority_process, setpriority_process},
    thread::{UnshareFlags, unshare_unsafe},
    time::{ClockId, clock_gettime},
};

/// Makes the calling thread, and the threads that it creates, run as soon as a processor is free, but not preempt the thread that
/// wakes them. That thread belongs to a process that is about to stop: until it has stopped, a stop that its user requests cannot
/// be distinguished from tracer's own.
pub fn let_others_stop() {
    let plain = libc::sched_param { sched_priority: 0 };
    // SAFETY: `plain` is what this policy takes. A refusal only makes a race longer that exists anyway.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const plain) };
}

/// Makes this thread run before others: a reader that waits for its turn among busy threads loses events. Without the right to do
/// so, its priority stays as it is.
pub fn run_first() {
    set_niceness(-15);
}

/// Returns the niceness of this thread: -20 to 19, and 0 if it is unknown.
#[must_use]
pub fn niceness() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Sets the niceness of this thread. Without the right to a lower one it stays as it is.
pub fn set_niceness(niceness: i32) {
    // Without an id, the system call means the calling thread.
    let _ = setpriority_process(None, niceness);
}

/// Returns the time of CLOCK_MONOTONIC, ns: the clock of `bpf_ktime_get_ns`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Reads the monotonic, boot and real-time clocks, ns, one after the other.
#[must_use]
pub fn clocks() -> [u64; 3] {
    [ClockId::Monotonic, ClockId::Boottime, ClockId::Realtime].map(clock_ns)
}

fn clock_ns(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    (t.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(t.tv_nsec as u64)
}

/// Offset of `recursion_misses` in bpf_prog_info (include/uapi/linux/bpf.h).
const RECURSION_MISSES: usize = 208;

/// Returns how often the kernel skipped a program that should have run. Kernels before 6.7 count this for raw trace events only.
///
/// # Errors
/// Returns the error of the system call.
pub fn program_misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
    /// The bpf_attr of that command.
    #[repr(C)]
    struct Attributes {
        fd: u32,
        len: u32,
        info: u64,
    }
    // The lists in it have length 0, so the kernel fills in only these words.
    let mut info = [0_u64; RECURSION_MISSES / 8 + 1];
    let attributes = Attributes {
        fd: program.as_raw_fd() as u32,
        len: size_of_val(&info) as u32,
        info: info.as_mut_ptr().expose_provenance() as u64,
    };
    // SAFETY: the kernel reads `attributes` and writes at most `len` bytes to `info`, which both live through the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_OBJ_GET_INFO_BY_FD,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(info[RECURSION_MISSES / 8])
}

/// Creates the smallest eBPF map and removes it again: whether the kernel permits this process to use eBPF at all.
///
/// # Errors
/// EPERM without the rights, or if a filter of system calls refuses it.
pub fn create_bpf_map() -> io::Result<()> {
    const BPF_MAP_CREATE: libc::c_int = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    // The bpf_attr of that command begins with type, size of a key, size of a value, and number of entries.
    let attributes: [u32; 4] = [BPF_MAP_TYPE_ARRAY, 4, 4, 1];
    // SAFETY: the kernel reads `attributes`, which live through the call.
    let map = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    let map = i32::try_from(nix::errno::Errno::result(map)?).map_err(io::Error::other)?;
    // SAFETY: the kernel created the descriptor for this call.
    drop(unsafe { OwnedFd::from_raw_fd(map) });
    Ok(())
}

/// Returns the numbers of the processors that are online.
///
/// # Errors
/// Fails if the kernel's list cannot be read.
pub fn online_processors() -> io::Result<Vec<u32>> {
    aya::util::online_cpus().map_err(|(_, error)| error)
}

/// The grace that programs get if the kernel cannot say when they have ended.
const GRACE: Duration = Duration::from_millis(20);

/// Waits until every eBPF program that runs now has ended, except those that may sleep.
pub fn wait_for_programs() {
    /// MEMBARRIER_CMD_GLOBAL of include/uapi/linux/membarrier.h: the kernel waits for a grace period of RCU, which protects
    /// programs while they run.
    const GLOBAL: libc::c_int = 1;
    // SAFETY: a system call that takes plain numbers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    // Kernels with processors that have no timer refuse the command.
    if done != 0 {
        std::thread::sleep(GRACE);
    }
}

/// Copies `to.len()` bytes from `address` of another process (`process_vm_readv`); faults pages in.
///
/// # Errors
/// EFAULT for memory that is not there, EPERM without CAP_SYS_PTRACE, ESRCH for a process that has exited.
pub fn read_memory(pid: u32, address: u64, to: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: to.len(),
    };
    // SAFETY: `local` names `to`, which is valid for writes; the kernel checks `remote`.
    let n = unsafe { libc::process_vm_readv(pid as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(n) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(n) if n < to.len() => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Ok(_) => Ok(()),
    }
}

/// Reads one u64 from another process.
///
/// # Errors
/// Returns the errors of [`read_memory`].
pub fn read_u64(pid: u32, address: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    read_memory(pid, address, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Gives the calling thread a mount namespace of its own with tracefs in it, if the thread does not see a tracefs. Nothing of it
/// remains when the thread ends.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN, ENODEV on a kernel without tracefs.
pub fn ensure_tracefs() -> io::Result<()> {
    if std::path::Path::new("/sys/kernel/tracing/events").is_dir()
        || std::path::Path::new("/sys/kernel/debug/tracing/events").is_dir()
    {
        return Ok(());
    }
    // SAFETY: unshares the namespace of this thread only; the thread then shares its file system context with no other.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let at = c"/sys/kernel/tracing";
    mount(c"tracefs", at, c"tracefs", MountFlags::empty(), None::<&CStr>)?;
    Ok(())
}

/// Returns whether the process behind a pidfd has exited.
#[must_use]
pub fn has_ended(pidfd: &OwnedFd) -> bool {
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A pidfd is readable from the process exit on.
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&none)).is_ok_and(|ready| ready > 0)
}
