//! The positions up to which the ring of records has been filled and emptied.
//!
//! A reader of the ring stops at a record that a program has reserved and not written yet, as if no record came after it. An empty
//! read therefore does not prove that no record had come; the kernel's own positions do. They are in the first two pages of the
//! ring's mapping: the consumer's, then the producer's (Documentation/bpf/ringbuf.rst). They count bytes and only grow.

use std::sync::atomic::Ordering;

use aya::maps::Map;

use crate::{
    CaptureError,
    shared_maps::words::{Access, PAGE, SharedWords},
};

/// The positions, shared with the kernel and with the reader of the ring.
pub struct Positions {
    pages: SharedWords,
}

/// Index of the producer's position among the words of both pages.
const PRODUCER: usize = PAGE / size_of::<u64>();

impl Positions {
    /// Maps the positions of a ring.
    ///
    /// # Errors
    /// Returns the error of the mapping.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let pages = SharedWords::new(map, "EVENTS", 2 * PAGE, Access::Read)?;
        Ok(Self { pages })
    }

    /// Returns the end of the records that programs have begun to write by now.
    pub fn reserved(&self) -> u64 {
        self.pages.word(PRODUCER).load(Ordering::Acquire)
    }

    /// Returns the end of the records that were taken.
    pub fn taken(&self) -> u64 {
        self.pages.word(0).load(Ordering::Acquire)
    }
}
