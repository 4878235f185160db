//! Words at scattered addresses in the memory of processes, which readers read.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::{Duration, Instant},
};

use tracer_core::event::Origin;

use crate::confined::{Answer, Memory, Piece, ReadError, Readers, Request, user_of};

/// Things read by one request, which takes 1024 pieces of memory.
const AT_ONCE: usize = 128;
/// Bytes of a word, as a piece.
const WORD: u32 = 8;
/// How long a request may take: longer than a process's own changes of its mappings delay it.
const LIMIT: Duration = Duration::from_millis(100);
/// How long tracer does not read a user's memory after it blocked: at first, and at most.
const SHUNNED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(64)];

/// The words of a thing, and the interval of the read: CLOCK_MONOTONIC ns.
#[derive(Clone, Copy, Debug)]
pub struct Seen<const WORDS: usize> {
    /// The words.
    pub words: [u64; WORDS],
    /// The process, and the time before the words were read.
    pub origin: Origin,
    /// The time after they were read.
    pub after_ns: u64,
}

/// Reads words. Memory that blocks costs the time of one request; tracer then leaves it alone for ever longer times.
pub struct Scattered {
    readers: Readers,
    /// The user of each process that was read.
    users: HashMap<u32, u32>,
    /// Users whose memory blocked: until when tracer does not read it, and the length of that time.
    shunned: HashMap<u32, (Instant, Duration)>,
}

impl Scattered {
    /// Creates a reader of words that uses these reader processes.
    pub fn new(readers: Readers) -> Self {
        Self {
            readers,
            users: HashMap::new(),
            shunned: HashMap::new(),
        }
    }

    /// Forgets the users of the processes: process ids may be reused.
    pub fn forget_users(&mut self) {
        self.users.clear();
    }

    /// Reads `WORDS` words (at most 8) of each thing, in order. Things are sorted by process; `places` returns the words'
    /// addresses. `seen` receives each thing in order: with `None` if its memory is absent or unreadable, or if its process has
    /// exited or blocks.
    ///
    /// The words of one thing are read in the order of their addresses in `places`: the word that must be read first comes first.
    pub fn read_each<T, const WORDS: usize>(
        &mut self,
        things: &[T],
        pid: impl Fn(&T) -> u32,
        places: impl Fn(&T) -> [u64; WORDS],
        mut seen: impl FnMut(&T, Option<Seen<WORDS>>),
    ) {
        const { assert!(WORDS > 0 && WORDS * AT_ONCE <= 1024, "more pieces than a request takes") };
        for of_process in things.chunk_by(|a, b| pid(a) == pid(b)) {
            let mut handed_over = 0;
            for some in of_process.chunks(AT_ONCE) {
                let Some(first) = some.first() else { continue };
                let piece = |address| Piece { address, len: WORD };
                let pieces = some.iter().flat_map(|thing| places(thing).map(piece)).collect();
                let pid = pid(first);
                let Some(memory) = self.read(pid, pieces) else {
                    break;
                };
                let words = memory.bytes.as_chunks::<{ WORD as usize }>().0;
                let words = words.as_chunks::<WORDS>().0.iter();
                let there = memory.there.as_chunks::<WORDS>().0.iter();
                for (thing, (words, there)) in some.iter().zip(words.zip(there)) {
                    handed_over += 1;
                    let read = Seen {
                        words: words.map(u64::from_ne_bytes),
                        origin: Origin {
                            time_ns: memory.time_ns,
                            pid,
                            tid: 0,
                        },
                        after_ns: memory.after_ns,
                    };
                    seen(thing, there.iter().all(|there| *there).then_some(read));
                }
            }
            of_process.iter().skip(handed_over).for_each(|thing| seen(thing, None));
        }
    }

    /// Reads pieces of the memory of a process, in order. Returns `None` if the process has exited, or if its memory blocks.
    pub(super) fn read(&mut self, pid: u32, pieces: Vec<Piece>) -> Option<Memory> {
        let user = match self.users.entry(pid) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(user_of(pid).ok()?),
        };
        let now = Instant::now();
        if self.shunned.get(&user).is_some_and(|(until, _)| now < *until) {
            return None;
        }
        match self
            .readers
            .request(user, &Request::Memory { pid, pieces }, now + LIMIT)
        {
            Ok(Answer::Memory(memory)) => {
                self.shunned.remove(&user);
                Some(memory)
            }
            Err(error @ (ReadError::Blocked | ReadError::NotExamined)) => {
                let [least, most] = SHUNNED;
                let last = self.shunned.get(&user).map(|(_, time)| *time);
                let time = last.map_or(least, |last| (last * 2).min(most));
                log::info!("memory of process {pid} (user {user}) is not sampled for {time:?}: {error}");
                self.shunned.insert(user, (Instant::now() + time, time));
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scattered() -> Scattered {
        // SAFETY: the other thread of a test program only waits, and the C library's own locks survive a fork.
        Scattered::new(unsafe { Readers::start() }.unwrap())
    }

    fn places(words: &[u64; 2]) -> [u64; 2] {
        let at = std::ptr::from_ref(words).expose_provenance() as u64;
        [at, at + 8]
    }

    #[test]
    fn each_piece_that_exists_is_read_and_the_others_are_marked() {
        let memory: Vec<[u64; 2]> = (0..300).map(|k| [k, 1000 + k]).collect();
        let mut things: Vec<[u64; 2]> = memory.iter().map(places).collect();
        // Nothing is mapped there: for the whole of one thing, and for the second word of another.
        for gone in [0, 7, 127, 128, 299] {
            things[gone][0] = 8;
        }
        things[50][1] = 8;
        let mut seen = Vec::new();
        let own = std::process::id();
        scattered().read_each(
            &things,
            |_| own,
            |thing| *thing,
            |_, found| seen.push(found.map(|found| found.words)),
        );
        let expected: Vec<_> = (0..300)
            .map(|k| (![0, 7, 50, 127, 128, 299].contains(&k)).then_some([k, 1000 + k]))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn of_a_process_that_ended_nothing_is_there() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut seen = Vec::new();
        let things = [places(&[0, 0]); 200];
        scattered().read_each(&things, |_| pid, |thing| *thing, |_, found| seen.push(found.is_some()));
        assert_eq!(seen, [false; 200]);
    }
}
