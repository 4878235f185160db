//! Whether what traced processes submit counts, and whether processes enter by themselves: one word that the programs read.
//!
//! Mapped, so that opening it is a store and no system call for a map: see `losses.rs`.

use std::sync::atomic::Ordering;

use aya::maps::Map;
use tracer_common::record::gate;

use crate::{
    CaptureError,
    mapped::{Access, Mapped, PAGE},
};

/// The map COUNTING, shared with the kernel.
pub struct Gate {
    word: Mapped,
}

impl Gate {
    /// Maps it. It is shut.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let word = Mapped::new(map, "COUNTING", PAGE, Access::Write)?;
        Ok(Self { word })
    }

    /// From now on it counts.
    pub fn open(&self) {
        self.word.word(0).fetch_or(gate::COUNTS, Ordering::SeqCst);
    }

    /// From now on processes that begin to use the KFD become traced by that, if the programs were loaded for it.
    pub fn admit(&self) {
        self.word.word(0).fetch_or(gate::ADMITS, Ordering::SeqCst);
    }

    /// From now on none does.
    pub fn admit_no_more(&self) {
        self.word.word(0).fetch_and(!gate::ADMITS, Ordering::SeqCst);
    }
}
