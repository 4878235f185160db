//! Reads the memory of other processes, with few system calls.
//!
//! `process_vm_readv` copies many pieces in one call, but refuses memory that has no pages of the host: the mappings of a driver
//! (`VM_IO`, `VM_PFNMAP`), in which a runtime can place rings and queues. `/proc/PID/mem` asks the driver for such memory
//! (`access` of its mapping). A reader asks there for each piece that the first call refuses.

use std::{fs::File, io, os::unix::fs::FileExt};

use nix::errno::Errno;

use super::Answer;
use crate::{
    confined::request::{MAX_MEMORY, MAX_PIECES, Memory, Piece, Reply},
    sys,
};

/// The maximum number of bytes that one request reads from `/proc/PID/mem`. The processor reads memory of a device word by word,
/// at some 10 MB/s: this much takes a tenth of a second.
const MAX_SLOW: usize = 1 << 20;

/// Reads pieces in their order; pieces that are not there become zeros.
pub fn read(pid: u32, pieces: &[Piece]) -> io::Result<Answer> {
    let total: u64 = pieces.iter().map(|piece| u64::from(piece.len)).sum();
    if pieces.len() > MAX_PIECES || total > MAX_MEMORY {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut bytes = vec![0; total as usize];
    let mut there = Vec::with_capacity(pieces.len());
    let (mut rest, mut to) = (pieces, bytes.as_mut_slice());
    let mut slow = Slow::new(pid);
    let time_ns = sys::monotonic_ns();
    while !rest.is_empty() {
        let whole = read_some(pid, rest, to)?;
        let (read, unread) = rest.split_at(whole);
        there.extend(read.iter().map(|_| true));
        let past = read.iter().map(|piece| piece.len as usize).sum::<usize>();
        to = &mut to[past..];
        if let Some(piece) = unread.first() {
            let (refused, others) = to.split_at_mut(piece.len as usize);
            let found = slow.read(piece.address, refused);
            if !found {
                // The kernel may have copied a part of it.
                refused.fill(0);
            }
            there.push(found);
            to = others;
        }
        rest = unread.get(1..).unwrap_or_default();
    }
    let after_ns = sys::monotonic_ns();
    drop(slow);
    let (body, file) = super::body(bytes)?;
    let memory = Memory {
        bytes: Vec::new(),
        there,
        time_ns,
        after_ns,
    };
    Ok((Reply::Memory(body, memory), file))
}

/// `/proc/PID/mem` of a process, for one request. The descriptor keeps the process's address space: no other process can take its
/// place.
struct Slow {
    pid: u32,
    /// Opened for the first piece; `None` if that failed.
    file: Option<Option<File>>,
    bytes_left: usize,
}

impl Slow {
    fn new(pid: u32) -> Self {
        Self {
            pid,
            file: None,
            bytes_left: MAX_SLOW,
        }
    }

    /// Copies bytes from an address; returns whether all of them are there.
    fn read(&mut self, address: u64, to: &mut [u8]) -> bool {
        let Some(left) = self.bytes_left.checked_sub(to.len()) else {
            return false;
        };
        let open = || File::open(format!("/proc/{}/mem", self.pid)).ok();
        let Some(file) = self.file.get_or_insert_with(open) else {
            return false;
        };
        // An address above the largest offset of a file is no address of a process.
        if i64::try_from(address).is_err() || file.read_exact_at(to, address).is_err() {
            return false;
        }
        self.bytes_left = left;
        true
    }
}

/// Reads pieces until `process_vm_readv` refuses one. Returns the number of pieces that were read.
fn read_some(pid: u32, pieces: &[Piece], to: &mut [u8]) -> io::Result<usize> {
    let remote: Vec<libc::iovec> = pieces
        .iter()
        .map(|piece| libc::iovec {
            iov_base: piece.address as *mut libc::c_void,
            iov_len: piece.len as usize,
        })
        .collect();
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: `local` names `to`, which is valid for writes; the kernel checks the addresses in `remote`.
    let read = unsafe {
        libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    let mut left = match Errno::result(read) {
        Ok(read) => read.cast_unsigned(),
        Err(Errno::EFAULT) => 0,
        Err(error) => return Err(error.into()),
    };
    let whole = pieces.iter().map_while(|piece| {
        left = left.checked_sub(piece.len as usize)?;
        Some(())
    });
    Ok(whole.count())
}
