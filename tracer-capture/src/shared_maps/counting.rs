//! One word that the programs read: whether the submissions of traced processes count, and whether processes enter by themselves.
//!
//! The word is mapped, so that opening the gate is a store and not a system call for a map: see `losses.rs`.

use std::sync::atomic::Ordering;

use aya::maps::Map;
use tracer_common::record::gate;

use crate::{
    CaptureError,
    shared_maps::words::{Access, PAGE, SharedWords},
};

/// The map COUNTING, shared with the kernel.
pub struct Counting {
    word: SharedWords,
}

impl Counting {
    /// Maps the gate, which is shut.
    ///
    /// # Errors
    /// Returns the error of the mapping.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let word = SharedWords::new(map, "COUNTING", PAGE, Access::Write)?;
        Ok(Self { word })
    }

    /// Makes submissions count from now on.
    pub fn open(&self) {
        self.word.word(0).fetch_or(gate::COUNTS, Ordering::SeqCst);
    }

    /// Makes no submission count from now on. A program that runs at this moment may still count one.
    pub fn close(&self) {
        self.word.word(0).fetch_and(!gate::COUNTS, Ordering::SeqCst);
    }

    /// Makes processes that begin to use the KFD become traced from now on, if the programs were loaded for it.
    pub fn admit(&self) {
        self.word.word(0).fetch_or(gate::ADMITS, Ordering::SeqCst);
    }

    /// Makes no more processes become traced.
    pub fn admit_no_more(&self) {
        self.word.word(0).fetch_and(!gate::ADMITS, Ordering::SeqCst);
    }
}
