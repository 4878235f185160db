//! Files that were examined in this recording: the map KNOWN, which the programs read. What they map of these pauses nobody.

use std::sync::atomic::Ordering;

use aya::maps::Map;
use tracer_common::pause::{FileKey, KNOWN_SLOTS, KNOWN_TRIES, KNOWN_WORDS};

use crate::{
    CaptureError,
    mapped::{Access, Mapped},
};

/// The map.
pub struct KnownFiles {
    words: Mapped,
}

const BYTES: usize = KNOWN_SLOTS as usize * KNOWN_WORDS * size_of::<u64>();

impl KnownFiles {
    /// Maps it.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let words = Mapped::new(map, "KNOWN", BYTES, Access::Write)?;
        Ok(Self { words })
    }

    /// Makes a file known. One whose entries are all taken stays unknown: it is examined each time.
    pub fn insert(&self, file: FileKey) {
        if file.inode == 0 {
            return;
        }
        for attempt in 0..KNOWN_TRIES {
            let first = file.slot(attempt) as usize * KNOWN_WORDS;
            let key = [file.inode, file.device_nsec, file.seconds];
            if self.words.word(first + KNOWN_WORDS - 1).load(Ordering::Acquire) == 0 {
                for (at, word) in key.into_iter().enumerate() {
                    self.words.word(first + at).store(word, Ordering::Relaxed);
                }
                // Last: programs look at this word first.
                self.words.word(first + KNOWN_WORDS - 1).store(1, Ordering::Release);
                return;
            }
            let is_same = |(at, word): (usize, u64)| self.words.word(first + at).load(Ordering::Relaxed) == word;
            if key.into_iter().enumerate().all(is_same) {
                return;
            }
        }
    }
}
