//! Words that lie scattered in the memory of one process, with few system calls.

use std::io;

use crate::sys;

/// Things read by one call. A call takes 1024 pieces of memory (UIO_MAXIOV).
const AT_ONCE: usize = 128;

/// What was read of a thing, and around when: CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug)]
pub struct Seen<const WORDS: usize> {
    /// The words.
    pub words: [u64; WORDS],
    /// Before they were read.
    pub time_ns: u64,
    /// After it.
    pub after_ns: u64,
}

/// Reads things of several processes, sorted by those, as [`read`] does. Each is handed over in their order: with `None` if it
/// is not there, its process has ended, or may not be looked at.
pub fn read_each<T, const WORDS: usize>(
    things: &[T],
    pid: impl Fn(&T) -> u32,
    places: impl Fn(&T) -> [u64; WORDS],
    mut seen: impl FnMut(&T, Option<Seen<WORDS>>),
) {
    for of_process in things.chunk_by(|a, b| pid(a) == pid(b)) {
        let mut told = 0;
        for some in of_process.chunks(AT_ONCE) {
            let Some(first) = some.first() else { continue };
            let time_ns = sys::monotonic_ns();
            let mut all = [None; AT_ONCE];
            let mut to = all.iter_mut();
            let result = read(pid(first), some, &places, |_, words| {
                if let Some(to) = to.next() {
                    *to = words;
                }
            });
            let after_ns = sys::monotonic_ns();
            for (thing, words) in some.iter().zip(all) {
                told += 1;
                let seen_words = |words| Seen {
                    words,
                    time_ns,
                    after_ns,
                };
                seen(thing, words.map(seen_words));
            }
            if result.is_err() {
                break;
            }
        }
        of_process.iter().skip(told).for_each(|thing| seen(thing, None));
    }
}

/// Reads `WORDS` words (at most 8) of each thing, in their order; `None` for one of which a word is not there. `places` are
/// the words' addresses.
///
/// `process_vm_readv` reads the pieces in the order in which they are named: what must be read first is named first.
///
/// # Errors
/// ESRCH for an ended process, EPERM without CAP_SYS_PTRACE. Things before it have been handed over.
fn read<T, const WORDS: usize>(
    pid: u32,
    things: &[T],
    places: impl Fn(&T) -> [u64; WORDS],
    mut found: impl FnMut(&T, Option<[u64; WORDS]>),
) -> io::Result<()> {
    const { assert!(WORDS > 0 && WORDS * AT_ONCE <= 1024, "more pieces than a call takes") };
    for chunk in things.chunks(AT_ONCE) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let mut words = [[0_u64; WORDS]; AT_ONCE];
            let whole = read_some(pid, rest, &places, &mut words)?;
            for (thing, words) in rest.iter().zip(words).take(whole) {
                found(thing, Some(words));
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

/// Reads things until one is not there; how many were.
fn read_some<T, const WORDS: usize>(
    pid: u32,
    things: &[T],
    places: &impl Fn(&T) -> [u64; WORDS],
    to: &mut [[u64; WORDS]; AT_ONCE],
) -> io::Result<usize> {
    let count = things.len().min(AT_ONCE);
    let piece = |address: u64| libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: size_of::<u64>(),
    };
    let mut remote = [[piece(0); WORDS]; AT_ONCE];
    for (pieces, thing) in remote.iter_mut().zip(things) {
        *pieces = places(thing).map(piece);
    }
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: count * size_of::<[u64; WORDS]>(),
    };
    // SAFETY: `local` names `to`, which takes that many bytes; the kernel checks what `remote` names.
    let n = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            &raw const local,
            1,
            remote.as_ptr().cast(),
            (WORDS * count) as libc::c_ulong,
            0,
        )
    };
    match usize::try_from(n) {
        Ok(bytes) => Ok(bytes / size_of::<[u64; WORDS]>()),
        Err(_) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EFAULT) => Ok(0),
            error => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(words: &[u64; 2]) -> [u64; 2] {
        let at = std::ptr::from_ref(words).expose_provenance() as u64;
        [at, at + 8]
    }

    #[test]
    fn each_thing_that_is_there_is_read_and_the_others_are_told() {
        let memory: Vec<[u64; 2]> = (0..300).map(|k| [k, 1000 + k]).collect();
        let mut things: Vec<[u64; 2]> = memory.iter().map(places).collect();
        // Nothing is mapped there: the whole of one, the second word of another.
        for gone in [0, 7, 127, 128, 299] {
            things[gone][0] = 8;
        }
        things[50][1] = 8;
        let mut seen = Vec::new();
        read(std::process::id(), &things, |thing| *thing, |_, words| seen.push(words)).unwrap();
        let expected: Vec<_> = (0..300)
            .map(|k| (![0, 7, 50, 127, 128, 299].contains(&k)).then_some([k, 1000 + k]))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_process_that_ended_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let error = read(pid, &[places(&[0, 0])], |thing| *thing, |_, _| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
