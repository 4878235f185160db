//! Determines the user of a process, to whom the cost of reading it is charged.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// `NS_GET_PARENT` and `NS_GET_OWNER_UID` (include/uapi/linux/nsfs.h).
const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;
/// Kernels nest user namespaces 32 deep.
const MAX_DEPTH: usize = 33;

/// Returns the user of a process, by its real id, and not by the effective id, which a program with the set-user-id bit changes.
///
/// For a process in a user namespace, this is the user who created the outermost one, unless root created it: a user may have 65536
/// further ids in the namespace, and would get as many times the readers.
///
/// This asks the kernel only, for data that is known without the memory of the process, so it does not block.
///
/// # Errors
/// Fails with ENOENT or ESRCH for a process that has exited.
pub fn user_of(pid: u32) -> io::Result<u32> {
    match maker_of_namespace(pid) {
        Some(user) if user != 0 => Ok(user),
        _ => real_user(pid),
    }
}

fn real_user(pid: u32) -> io::Result<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    // The name comes first, and has its newlines escaped.
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:\t"));
    let real = ids.and_then(|ids| ids.split('\t').next()?.parse().ok());
    real.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the user who created the outermost user namespace around the process, except the initial namespace. Returns `None` if
/// the process is in the initial namespace, or if the creator can't be determined.
fn maker_of_namespace(pid: u32) -> Option<u32> {
    let mut inner: OwnedFd = File::open(format!("/proc/{pid}/ns/user")).ok()?.into();
    let mut maker = None;
    for _ in 0..MAX_DEPTH {
        // SAFETY: the call takes no argument, and returns a descriptor. The initial namespace, and one outside of the caller's, has
        // no parent.
        let outer = unsafe { libc::ioctl(inner.as_raw_fd(), NS_GET_PARENT) };
        if outer < 0 {
            return maker;
        }
        // SAFETY: the descriptor was just created, and has no other owner.
        let outer = unsafe { OwnedFd::from_raw_fd(outer) };
        let mut owner: libc::uid_t = 0;
        // SAFETY: the call writes one uid to `owner`.
        if unsafe { libc::ioctl(inner.as_raw_fd(), NS_GET_OWNER_UID, &raw mut owner) } == 0 {
            maker = Some(owner);
        }
        inner = outer;
    }
    maker
}
