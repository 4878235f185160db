//! The indexes of many queues of one process, with few system calls.

use std::io;

use tracer_core::model::Position;

/// Queues read by one call. Each is two pieces of the process's memory, of which a call takes 1024 (UIO_MAXIOV).
pub const AT_ONCE: usize = 128;

/// What was read of a queue: the read index, then the write index.
pub type Indexes = (u64, u64);

/// Reads the indexes of queues, which are all of process `pid`, in their order; `None` for one that is not there.
///
/// `process_vm_readv` reads the pieces in the order in which they are named: the read index first, so that it is never
/// above the write index of a queue that is one.
///
/// # Errors
/// ESRCH for an ended process, EPERM without CAP_SYS_PTRACE. Queues before it have been handed over.
pub fn read(pid: u32, queues: &[Position], mut found: impl FnMut(&Position, Option<Indexes>)) -> io::Result<()> {
    for chunk in queues.chunks(AT_ONCE) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let mut indexes = [[0_u64; 2]; AT_ONCE];
            let whole = read_some(pid, rest, &mut indexes)?;
            for (queue, [read, write]) in rest.iter().zip(indexes).take(whole) {
                found(queue, Some((read, write)));
            }
            // What ended the call early is not there.
            if let Some(gone) = rest.get(whole) {
                found(gone, None);
            }
            rest = rest.get(whole + 1..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Reads queues until one is not there; how many were.
fn read_some(pid: u32, queues: &[Position], to: &mut [[u64; 2]; AT_ONCE]) -> io::Result<usize> {
    let count = queues.len().min(AT_ONCE);
    let piece = |address: u64| libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: size_of::<u64>(),
    };
    let mut remote = [piece(0); 2 * AT_ONCE];
    for (pair, queue) in remote.as_chunks_mut::<2>().0.iter_mut().zip(queues) {
        *pair = [piece(queue.read_pointer), piece(queue.write_pointer)];
    }
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: count * size_of::<[u64; 2]>(),
    };
    // SAFETY: `local` names `to`, which takes that many bytes; the kernel checks what `remote` names.
    let n = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            &raw const local,
            1,
            remote.as_ptr(),
            2 * count as libc::c_ulong,
            0,
        )
    };
    match usize::try_from(n) {
        Ok(bytes) => Ok(bytes / size_of::<[u64; 2]>()),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EFAULT) => Ok(0),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(indexes: &[u64; 2]) -> Position {
        let at = std::ptr::from_ref(indexes).expose_provenance() as u64;
        Position {
            pid: std::process::id(),
            handle: at,
            read_pointer: at,
            write_pointer: at + 8,
        }
    }

    #[test]
    fn each_queue_that_is_there_is_read_and_the_others_are_told() {
        let memory: Vec<[u64; 2]> = (0..300).map(|k| [k, 1000 + k]).collect();
        let mut queues: Vec<Position> = memory.iter().map(position).collect();
        // Nothing is mapped there: the whole of one, the second index of another.
        for gone in [0, 7, 127, 128, 299] {
            queues[gone].read_pointer = 8;
        }
        queues[50].write_pointer = 8;
        let mut seen = Vec::new();
        read(std::process::id(), &queues, |_, indexes| seen.push(indexes)).unwrap();
        let expected: Vec<_> = (0..300)
            .map(|k| (![0, 7, 50, 127, 128, 299].contains(&k)).then_some((k, 1000 + k)))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_process_that_ended_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let error = read(pid, &[position(&[0, 0])], |_, _| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
