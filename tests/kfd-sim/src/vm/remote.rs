//! Access to the memory of another process, by `process_vm_readv` and `process_vm_writev`.

use std::io;

/// Reads another process's memory: all of it, or none.
pub fn read_process(pid: i32, va: u64, out: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec {
        iov_base: out.as_mut_ptr().cast(),
        iov_len: out.len(),
    };
    let remote = libc::iovec {
        iov_base: va as *mut libc::c_void,
        iov_len: out.len(),
    };
    // SAFETY: `local` describes `out`, which is writable; the kernel checks the remote side.
    let done = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    all_or_error(done, out.len())
}

/// Writes `data` over the remote pieces, in order, and empties their list. Reports complete success or an error.
pub fn write_process(pid: i32, data: &[u8], remote: &mut Vec<libc::iovec>) -> io::Result<()> {
    let mut data = data;
    for pieces in remote.chunks(libc::UIO_MAXIOV as usize) {
        let len: usize = pieces.iter().map(|piece| piece.iov_len).sum();
        let local = libc::iovec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: len,
        };
        // SAFETY: `local` describes the first `len` bytes of `data`, which are only read; the kernel checks the remote side.
        let done =
            unsafe { libc::process_vm_writev(pid, &raw const local, 1, pieces.as_ptr(), pieces.len() as u64, 0) };
        if let Err(error) = all_or_error(done, len) {
            remote.clear();
            return Err(error);
        }
        data = &data[len..];
    }
    remote.clear();
    Ok(())
}

/// Treats a partial transfer as a failure: the address after the transferred bytes is not mapped.
fn all_or_error(done: isize, len: usize) -> io::Result<()> {
    match done {
        done if done == len as isize => Ok(()),
        done if done < 0 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
    }
}

/// Returns whether the process still has its memory. A process loses its memory at the start of its exit, before the exit is
/// reported.
pub fn has_memory(pid: i32) -> bool {
    let nothing_there = read_process(pid, 0, &mut [0]);
    nothing_there.err().and_then(|error| error.raw_os_error()) != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_has_memory() {
        assert!(has_memory(std::process::id() as i32));
        assert!(!has_memory(1 << 30));
    }
}
