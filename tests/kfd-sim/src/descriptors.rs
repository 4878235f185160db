//! Descriptors that an ioctl gives to its caller, which FUSE cannot do.
//!
//! A filter of the client's system calls (seccomp) stops these ioctls, and only these, before they begin. A thread here gives the
//! caller the descriptor, notes its number, and lets the ioctl continue. It then arrives at the device file as any other, where its
//! handler finds the number. Tracepoints of system calls see one ordinary ioctl.

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::dmabuf::{Shared, file_name};
use crate::ioctl::sharing::{EXPORT_DMABUF, PRIME_HANDLE_TO_FD, exported};
use crate::machine::Machine;

/// The filter's return value for what it does not stop, and for what it stops.
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// `AUDIT_ARCH_X86_64`.
const X86_64: u32 = 0xc000_003e;

/// Offsets in `struct seccomp_data`: the number, the architecture, and the low half of the second argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const COMMAND: u32 = 24;

/// A connection over which the client's first process sends the descriptor of its filter.
pub struct Channel {
    client: OwnedFd,
    simulator: OwnedFd,
}

impl Channel {
    /// Creates a connection.
    pub fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        if unsafe {
            libc::socketpair(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
                0,
                ends.as_mut_ptr(),
            )
        } != 0
        {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were just created and have no other owner.
        let [client, simulator] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(Self { client, simulator })
    }

    /// Returns the client's end.
    pub fn client_end(&self) -> RawFd {
        self.client.as_raw_fd()
    }

    /// Starts the thread that serves the client, once it runs. Without a filter, ioctls that give descriptors fail with ENOTTY.
    pub fn serve(self, machine: &Arc<Machine>, folder: File) -> io::Result<()> {
        drop(self.client);
        let Some(listener) = receive(&self.simulator) else {
            log::warn!("no seccomp filter in the client: no ioctl can give it a descriptor");
            return Ok(());
        };
        let machine = Arc::clone(machine);
        std::thread::Builder::new()
            .name("descriptors".into())
            .spawn(move || serve(&listener, &machine, &folder))?;
        Ok(())
    }
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Continues `jt` or `jf` instructions further on.
const fn if_equal(k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Stops the ioctls that give descriptors.
static FILTER: [libc::sock_filter; 9] = [
    statement(LOAD, ARCHITECTURE),
    if_equal(X86_64, 0, 5),
    statement(LOAD, NUMBER),
    if_equal(libc::SYS_ioctl as u32, 0, 3),
    statement(LOAD, COMMAND),
    if_equal(EXPORT_DMABUF, 2, 0),
    if_equal(PRIME_HANDLE_TO_FD, 1, 0),
    statement(RETURN, ALLOW),
    statement(RETURN, NOTIFY),
];

/// Puts the filter in the calling process and sends its descriptor. Makes only system calls, so that it can run between fork and
/// exec. A kernel that refuses leaves the process without the filter.
pub fn install(client_end: RawFd) {
    let program = libc::sock_fprog {
        len: FILTER.len() as u16,
        filter: FILTER.as_ptr().cast_mut(),
    };
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Since Linux 5.19, only a deadly signal interrupts a stopped call, so that it is not stopped twice.
    for flags in [listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listener] {
        // SAFETY: `program` refers to a valid filter, which the kernel copies.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if fd >= 0 {
            send(client_end, fd as RawFd);
            return;
        }
    }
}

/// The control message with one descriptor, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Calls `act` on a message of one byte, with room for a descriptor.
fn with_message<T>(control: &mut Control, act: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let mut byte = [0u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    act(&mut message)
}

fn send(socket: RawFd, fd: RawFd) {
    let mut control = Control([0; 24]);
    with_message(&mut control, |message| {
        // SAFETY: the control buffer has room for one header and one descriptor; sendmsg reads what `message` refers to.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
            libc::sendmsg(socket, message, 0);
        }
    });
}

fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut control = Control([0; 24]);
    with_message(&mut control, |message| {
        // SAFETY: recvmsg writes within what `message` refers to; the header is checked before it is used.
        unsafe {
            if libc::recvmsg(socket.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC) <= 0 {
                return None;
            }
            let header = libc::CMSG_FIRSTHDR(message);
            if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
            Some(OwnedFd::from_raw_fd(fd))
        }
    })
}

/// Serves stopped ioctls until no process with the filter is left.
fn serve(listener: &OwnedFd, machine: &Machine, folder: &File) {
    loop {
        let mut poll = libc::pollfd {
            fd: listener.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: `poll` is one valid pollfd.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
        if poll.revents & libc::POLLIN == 0 {
            if poll.revents != 0 {
                return;
            }
            continue;
        }
        // SAFETY: all-zero is a valid value, as the kernel requires of the buffer.
        let mut stopped: libc::seccomp_notif = unsafe { zeroed() };
        // SAFETY: the kernel writes one struct of this type.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut stopped) } != 0 {
            // The caller has been killed meanwhile.
            continue;
        }
        give(listener, &stopped, machine, folder);
        let answer = libc::seccomp_notif_resp {
            id: stopped.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        // SAFETY: the kernel reads one struct of this type. It fails only if the caller was killed.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    }
}

/// Gives the caller of a stopped ioctl its descriptor, if the ioctl will succeed.
fn give(listener: &OwnedFd, stopped: &libc::seccomp_notif, machine: &Machine, folder: &File) {
    let (tid, command, argument) = (stopped.pid as i32, stopped.data.args[1] as u32, stopped.data.args[2]);
    let Some((what, shared, flags)) = exported(machine, tid, command, argument) else {
        return;
    };
    let fd = open(machine, shared, folder).and_then(|file| {
        let added = libc::seccomp_notif_addfd {
            id: stopped.id,
            flags: 0,
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: flags & libc::O_CLOEXEC as u32,
        };
        // SAFETY: the kernel reads one struct of this type.
        let fd = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) };
        u32::try_from(fd).map_err(|_| io::Error::last_os_error())
    });
    match fd {
        Ok(fd) => machine.exports.give(tid, what, fd),
        Err(error) => log::warn!("no descriptor for thread {tid}: {error}"),
    }
}

/// Opens the file of a new dmabuf.
fn open(machine: &Machine, shared: Shared, folder: &File) -> io::Result<OwnedFd> {
    let id = machine.exports.add(shared);
    let name = std::ffi::CString::new(file_name(id))?;
    // SAFETY: `name` is NUL-terminated; the result is checked.
    let fd = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        machine.exports.closed(id);
        return Err(error);
    }
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
