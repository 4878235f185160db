//! Memory of traced processes that the programs in the kernel could not copy.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use crate::confined::{Answer, Piece, ReadError, Readers, Request, user_of};

/// Most processes that tracer remembers because their memory has blocked a reader.
const MAX_REMEMBERED: usize = 4096;
/// Processes of one user whose memory may block a reader. After that tracer does not read any memory of this user: the buffer in
/// which records wait has room for some delays only.
const MAX_STRIKES: usize = 4;
/// How long the user of a process is taken to stay the same. Asking takes as long as reading its memory.
const SAME_USER: Duration = Duration::from_millis(100);

/// An address in a process's memory, and the place to which bytes are copied from there.
pub type Wanted<'a> = (u64, &'a mut [u8]);

/// A source of copies of processes' memory.
pub trait Fetch {
    /// Copies these pieces in order; returns whether all of them were there.
    fn fetch(&mut self, pid: u32, wanted: &mut [Wanted<'_>]) -> bool;
}

/// Fetches nothing: for records that need no further memory.
impl Fetch for () {
    fn fetch(&mut self, _: u32, _: &mut [Wanted<'_>]) -> bool {
        false
    }
}

/// Lets readers copy the memory: a process's memory may block its reader for ever.
pub struct Remote {
    readers: Readers,
    patience: Duration,
    blocked: HashSet<u32>,
    /// By user.
    strikes: HashMap<u32, usize>,
    /// The process that was read last, its user, and when it had that one.
    last: Option<(u32, u32, Instant)>,
}

impl Remote {
    /// `patience` is how long it waits for an answer. For each process it waits in vain only once.
    pub fn new(readers: Readers, patience: Duration) -> Self {
        Self {
            readers,
            patience,
            blocked: HashSet::new(),
            strikes: HashMap::new(),
            last: None,
        }
    }

    /// Returns the user whose reader copies the memory of a process. Another process with this id may have it for [`SAME_USER`].
    fn user(&mut self, pid: u32) -> Option<u32> {
        if let Some((of, user, at)) = self.last
            && of == pid
            && at.elapsed() < SAME_USER
        {
            return Some(user);
        }
        let user = user_of(pid).ok()?;
        self.last = Some((pid, user, Instant::now()));
        Some(user)
    }

    fn strike(&mut self, pid: u32, user: u32) {
        log::warn!("process {pid}: reading its memory took too long; tracer does not try again");
        if self.blocked.len() >= MAX_REMEMBERED {
            self.blocked.clear();
        }
        self.blocked.insert(pid);
        *self.strikes.entry(user).or_default() += 1;
    }
}

impl Fetch for Remote {
    fn fetch(&mut self, pid: u32, wanted: &mut [Wanted<'_>]) -> bool {
        if self.blocked.contains(&pid) {
            return false;
        }
        let user = self.user(pid);
        let is_trusted = |user: &u32| self.strikes.get(user).is_none_or(|&strikes| strikes < MAX_STRIKES);
        let user = user.filter(is_trusted);
        let piece = |(address, to): &Wanted<'_>| {
            let len = u32::try_from(to.len()).ok()?;
            Some(Piece { address: *address, len })
        };
        let pieces: Option<Vec<Piece>> = wanted.iter().map(piece).collect();
        let (Some(user), Some(pieces)) = (user, pieces) else {
            return false;
        };
        let request = Request::Memory { pid, pieces };
        match self.readers.request(user, &request, Instant::now() + self.patience) {
            Ok(Answer::Memory(memory)) if memory.there.iter().all(|there| *there) => {
                let mut bytes = memory.bytes.as_slice();
                for (_, to) in wanted {
                    let (own, rest) = bytes.split_at(to.len().min(bytes.len()));
                    to[..own.len()].copy_from_slice(own);
                    bytes = rest;
                }
                true
            }
            Err(ReadError::Blocked) => {
                self.strike(pid, user);
                false
            }
            _ => false,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sys;

    /// Reads at once, in this thread.
    pub struct Direct;

    impl Fetch for Direct {
        fn fetch(&mut self, pid: u32, wanted: &mut [Wanted<'_>]) -> bool {
            let mut all = wanted.iter_mut();
            all.all(|(address, to)| sys::read_memory(pid, *address, to).is_ok())
        }
    }

    #[test]
    fn pieces_come_in_their_order_or_not_at_all() {
        // SAFETY: the child makes plain calls; other threads of this test program only wait.
        let readers = unsafe { Readers::start() }.unwrap();
        let mut remote = Remote::new(readers, Duration::from_secs(60));
        let words = [1_u64, 2, 3].map(std::hint::black_box);
        let at = |index: usize| (&raw const words[index]).expose_provenance() as u64;
        let (mut first, mut second) = ([0; 8], [0; 16]);
        let pid = std::process::id();
        assert!(remote.fetch(pid, &mut [(at(2), &mut first), (at(0), &mut second)]));
        assert_eq!(u64::from_ne_bytes(first), 3);
        assert_eq!((second[0], second[8]), (1, 2));
        assert!(!remote.fetch(pid, &mut [(at(2), &mut first), (8, &mut second)]));
        assert!(remote.blocked.is_empty(), "it was there at once");
    }
}
