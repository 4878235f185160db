//! Limits what confined processes may do.

use std::{collections::BTreeMap, io};

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, Scope};
use rustix::{
    process::{DumpableBehavior, Resource, Rlimit, Signal, getppid, getrlimit, set_dumpable_behavior, setrlimit},
    thread::{CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities},
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::sealed::MEMFD_FLAGS;

/// The capabilities that reading takes.
pub const READER: CapabilitySet = CapabilitySet::SYS_PTRACE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// `nobody`: files are opened as this user, so that no file of root can be opened for writing.
const NOBODY: u32 = 65534;

/// The memory of a parser in bytes: the largest file, mapped, and its tables.
const PARSER_MEMORY: u64 = 4 << 30;
/// The total processor time of a parser, in s. The recorder retires a parser before valid files use up this time.
const PARSER_SECONDS: u64 = 20;
/// The maximum number of descriptors of a confined process. The kernel also refuses to send any descriptor while more than this are
/// on their way between processes of the same user, whichever process sent them.
const DESCRIPTORS: u64 = 1024;

/// Confines the calling process, the spawner, to what readers need. This can't be undone, and applies to all processes that it
/// forks.
///
/// # Errors
/// Fails with the kernel's error.
pub fn confine_spawner() -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    // Capabilities in the bounding set come back with a new program only. Without CAP_SETPCAP they stay there: the filter forbids
    // new programs.
    for capability in CapabilitySet::all().iter() {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let own = capabilities(None)?;
    if rustix::process::geteuid().is_root() {
        // SAFETY: the arguments are plain numbers. Without CAP_SETGID the groups stay as they are.
        unsafe { libc::setgroups(0, std::ptr::null()) };
        // SAFETY: the arguments are plain numbers. The ids by which the kernel checks signals stay root's, so that no process of
        // `nobody` can send a signal.
        unsafe {
            libc::setfsgid(NOBODY);
            libc::setfsuid(NOBODY);
        }
    }
    // This comes after the ids, because leaving root's id removes the file capabilities.
    keep(own.permitted & READER)
}

fn keep(capabilities: CapabilitySet) -> io::Result<()> {
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

/// Makes the kernel kill the calling process when its parent, whose id was `parent`, exits.
///
/// # Errors
/// Fails with `NotFound` if the parent is gone already.
pub fn end_with_parent(parent: rustix::process::Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Confines a reader, a fork of the spawner.
///
/// # Errors
/// Fails with the kernel's error.
pub fn confine_reader() -> io::Result<()> {
    limit(Resource::Core, 0)?;
    limit(Resource::Nofile, DESCRIPTORS)?;
    // Readers do not use Landlock: it would forbid them to examine processes outside of their domain.
    filter(reader_calls()?)
}

/// Confines a parser, a fork of the spawner.
///
/// # Errors
/// Fails with the kernel's error.
pub fn confine_parser() -> io::Result<()> {
    keep(CapabilitySet::empty())?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, DESCRIPTORS)?;
    limit(Resource::As, PARSER_MEMORY)?;
    limit(Resource::Cpu, PARSER_SECONDS)?;
    // The kernel applies those of these rules that it knows; the filter does not depend on them.
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V7))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V7)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V7)));
    ruleset
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(io::Error::other)?;
    filter(common_calls()?)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    // A lower limit of the recorder stays: without CAP_SYS_RESOURCE no process may raise its own.
    let most = getrlimit(resource).maximum.map_or(most, |own| own.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}

type Calls = BTreeMap<i64, Vec<SeccompRule>>;

/// Makes the kernel kill the process at the first system call that is not among `calls`.
fn filter(calls: Calls) -> io::Result<()> {
    // The first read of the clock asks where the kernel has put its function for that.
    let _ = crate::sys::monotonic_ns();
    let filter = SeccompFilter::new(
        calls,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        TargetArch::x86_64,
    );
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

/// Returns the rule that allows a call if, under `mask`, the bits of that argument equal `value`.
fn bits(argument: u8, mask: u64, value: u64) -> io::Result<Vec<SeccompRule>> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value);
    let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
    Ok(vec![rule.map_err(io::Error::other)?])
}

/// The system calls of Rust and the C library themselves (memory, time, exit), and of messages: all that a parser needs.
fn common_calls() -> io::Result<Calls> {
    let mut calls: Calls = [
        libc::SYS_recvmsg,
        libc::SYS_sendmsg,
        libc::SYS_poll,
        libc::SYS_ppoll,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_fcntl,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_getrandom,
        // getrandom of glibc 2.41 and later: it blocks signals while it makes its states, as many as there are processors.
        libc::SYS_rt_sigprocmask,
        libc::SYS_sched_getaffinity,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]
    .into_iter()
    .map(|call| (call, Vec::new()))
    .collect();
    // The process can't create new executable memory.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        calls.insert(call, bits(2, libc::PROT_EXEC as u64, 0)?);
    }
    // glibc names its own memory under `GLIBC_TUNABLES=glibc.mem.decorate_maps=1`.
    let naming = bits(0, u64::from(u32::MAX), libc::PR_SET_VMA as u64)?;
    calls.insert(libc::SYS_prctl, naming);
    Ok(calls)
}

fn reader_calls() -> io::Result<Calls> {
    let mut calls = common_calls()?;
    let plain = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_pread64,
        libc::SYS_lseek,
        libc::SYS_openat2,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_fstatfs,
        libc::SYS_readlink,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_process_vm_readv,
    ];
    calls.extend(plain.map(|call| (call, Vec::new())));
    // Files are opened for reading only. (The filter can't see the flags of openat2: there the file-system user forbids writing.)
    let writes = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;
    for (call, flags) in [(libc::SYS_open, 1), (libc::SYS_openat, 2)] {
        calls.insert(call, bits(flags, writes as u64, libc::O_RDONLY as u64)?);
    }
    calls.insert(
        libc::SYS_memfd_create,
        bits(1, u64::from(u32::MAX), u64::from(MEMFD_FLAGS.bits()))?,
    );
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// Returns how a fork exits that confines itself and then makes a system call.
    fn ends(confine: fn() -> io::Result<()>, call: [i64; 5]) -> std::process::ExitStatus {
        // SAFETY: the child makes plain calls and exits; the other thread of a test program only waits.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let [number, a, b, c, d] = call;
            let code = if confine().is_ok() {
                // SAFETY: pointers are null, or point to constants; no call of the tests changes this process's memory.
                unsafe { libc::syscall(number, a, b, c, d) };
                0
            } else {
                1
            };
            // SAFETY: always sound.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `status` takes an int.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        std::process::ExitStatus::from_raw(status)
    }

    fn as_reader() -> io::Result<()> {
        confine_spawner()?;
        confine_reader()
    }

    fn as_parser() -> io::Result<()> {
        confine_spawner()?;
        confine_parser()
    }

    #[test]
    fn calls_that_are_not_needed_kill() {
        let path = c"/proc/self/stat".as_ptr().expose_provenance() as i64;
        let at = i64::from(libc::AT_FDCWD);
        let open = |flags: i32| [libc::SYS_openat, at, path, i64::from(flags), 0];
        let map = |protection: i32| {
            let private = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            [libc::SYS_mmap, 0, 4096, i64::from(protection), private]
        };
        let of_none = [
            [libc::SYS_socket, 1, 1, 0, 0],
            [libc::SYS_execve, path, 0, 0, 0],
            [libc::SYS_kill, 0, 0, 0, 0],
            [libc::SYS_clone, 0, 0, 0, 0],
            [libc::SYS_ptrace, 0, 0, 0, 0],
            [libc::SYS_process_vm_writev, 0, 0, 0, 0],
            [libc::SYS_setfsuid, 0, 0, 0, 0],
            [libc::SYS_bpf, 0, 0, 0, 0],
            [libc::SYS_prctl, i64::from(libc::PR_SET_DUMPABLE), 1, 0, 0],
            open(libc::O_WRONLY),
            open(libc::O_CREAT),
            map(libc::PROT_EXEC | libc::PROT_READ),
        ];
        let of_readers = [
            open(libc::O_RDONLY),
            [libc::SYS_process_vm_readv, 1, 0, 0, 0],
            [libc::SYS_memfd_create, path, i64::from(MEMFD_FLAGS.bits()), 0, 0],
        ];
        let of_both = [
            map(libc::PROT_READ),
            [libc::SYS_brk, 0, 0, 0, 0],
            [libc::SYS_rt_sigprocmask, 0, 0, 0, 8],
            [libc::SYS_prctl, i64::from(libc::PR_SET_VMA), 0, 0, 0],
        ];
        for (confine, forbidden, allowed) in [
            (
                as_reader as fn() -> _,
                [of_none.as_slice(), &[]],
                [of_readers.as_slice(), &of_both],
            ),
            (as_parser, [&of_none, &of_readers], [&[], &of_both]),
        ] {
            for &call in forbidden.into_iter().flatten() {
                assert_eq!(ends(confine, call).signal(), Some(libc::SIGSYS), "{call:?}");
            }
            for &call in allowed.into_iter().flatten() {
                assert_eq!(ends(confine, call).code(), Some(0), "{call:?}");
            }
        }
        let other_memory = [libc::SYS_memfd_create, path, i64::from(libc::MFD_HUGETLB), 0, 0];
        assert_eq!(ends(as_reader, other_memory).signal(), Some(libc::SIGSYS));
    }
}
