//! Files that were examined in this recording: the map KNOWN, which the programs read. Mapping a known file pauses no process.

use std::{
    collections::VecDeque,
    os::fd::AsFd,
    sync::{Mutex, PoisonError, atomic::Ordering},
};

use aya::maps::Map;
use tracer_common::pause::{FileKey, KNOWN_SLOTS, KNOWN_TRIES, KNOWN_WORDS};

use crate::{
    CaptureError,
    shared_maps::words::{Access, SharedWords, memory},
};

/// The map. A file that is no longer known leaves its entry behind, with inode 0: programs continue their search after it, and
/// another file may take it.
pub struct KnownFiles {
    words: SharedWords,
    /// The known files, those that were inserted first in front. Locked by the thread that writes.
    order: Mutex<VecDeque<FileKey>>,
}

/// The largest number of known files: with half of the entries free, a file finds one. On a machine on which containers come and
/// go for days, those that were examined first become unknown, and are examined again if a process maps them.
const MAX: usize = KNOWN_SLOTS as usize / 2;

const BYTES: usize = KNOWN_SLOTS as usize * KNOWN_WORDS * size_of::<u64>();

impl KnownFiles {
    /// Maps the known files.
    ///
    /// # Errors
    /// Fails with the error of the mapping.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let words = SharedWords::new(map, "KNOWN", BYTES, Access::Write)?;
        Ok(Self {
            words,
            order: Mutex::default(),
        })
    }

    /// Creates a map that no program reads.
    ///
    /// # Errors
    /// Fails with the error of the system calls.
    pub fn in_memory() -> Result<Self, CaptureError> {
        let memory = memory("known", BYTES)?;
        let words = SharedWords::of_descriptor(memory.as_fd(), BYTES, Access::Write)?;
        Ok(Self {
            words,
            order: Mutex::default(),
        })
    }

    /// Makes a file known. A file whose entries are all taken stays unknown: it is examined each time.
    pub fn insert(&self, file: FileKey) {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if file.inode == 0 || entries(file).any(|first| self.is(first, file)) {
            return;
        }
        if order.len() >= MAX
            && let Some(oldest) = order.pop_front()
        {
            self.clear(oldest);
        }
        let word = |at| self.words.word(at);
        let free = entries(file).find(|first| word(first + INODE).load(Ordering::Acquire) == 0);
        if let Some(first) = free {
            word(first + 1).store(file.device_nsec, Ordering::Relaxed);
            word(first + 2).store(file.seconds, Ordering::Relaxed);
            // These words are written afterwards, because programs check them last and first.
            word(first + INODE).store(file.inode, Ordering::Release);
            word(first + WRITTEN).store(1, Ordering::Release);
            order.push_back(file);
        }
    }

    /// Makes a file unknown.
    pub fn remove(&self, file: FileKey) {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.retain(|known| *known != file);
        self.clear(file);
    }

    fn clear(&self, file: FileKey) {
        for first in entries(file).filter(|&first| self.is(first, file)) {
            self.words.word(first + INODE).store(0, Ordering::Release);
        }
    }

    fn is(&self, first: usize, file: FileKey) -> bool {
        let key = [file.inode, file.device_nsec, file.seconds];
        let is_same = |(at, word): (usize, u64)| self.words.word(at).load(Ordering::Relaxed) == word;
        (first..).zip(key).all(is_same)
    }
}

/// Words of an entry: the inode, and the word that says that the entry was ever written.
const INODE: usize = 0;
const WRITTEN: usize = KNOWN_WORDS - 1;

/// Returns the first words of the entries that are tried for a file.
fn entries(file: FileKey) -> impl Iterator<Item = usize> {
    (0..KNOWN_TRIES).map(move |attempt| file.slot(attempt) as usize * KNOWN_WORDS)
}
