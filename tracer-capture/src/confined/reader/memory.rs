//! Reads the memory of other processes, with few system calls.

use std::io;

use nix::errno::Errno;

use super::Answer;
use crate::{
    confined::request::{MAX_MEMORY, MAX_PIECES, Memory, Piece, Reply},
    sys,
};

/// Reads pieces in their order; pieces that are not there become zeros.
pub fn read(pid: u32, pieces: &[Piece]) -> io::Result<Answer> {
    let total: u64 = pieces.iter().map(|piece| u64::from(piece.len)).sum();
    if pieces.len() > MAX_PIECES || total > MAX_MEMORY {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut bytes = vec![0; total as usize];
    let mut there = Vec::with_capacity(pieces.len());
    let (mut rest, mut to) = (pieces, bytes.as_mut_slice());
    let time_ns = sys::monotonic_ns();
    while !rest.is_empty() {
        let whole = read_some(pid, rest, to)?;
        let (read, unread) = rest.split_at(whole);
        there.extend(read.iter().map(|_| true));
        // The piece that ended the call early is not there; the kernel may have copied a part of it.
        let gone = unread.first().map_or(0, |piece| piece.len as usize);
        let past = read.iter().map(|piece| piece.len as usize).sum::<usize>();
        to[past..past + gone].fill(0);
        to = &mut to[past + gone..];
        there.extend(unread.first().map(|_| false));
        rest = unread.get(1..).unwrap_or_default();
    }
    let after_ns = sys::monotonic_ns();
    let (body, file) = super::body(bytes)?;
    let memory = Memory {
        bytes: Vec::new(),
        there,
        time_ns,
        after_ns,
    };
    Ok((Reply::Memory(body, memory), file))
}

/// Reads pieces until one is not there. Returns the number of pieces that were read.
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
