//! How far the ring of records has been filled and emptied.
//!
//! A reader of the ring stops at a record that a program has reserved and not written yet, as if nothing came behind it:
//! that nothing could be read does not say that nothing had come. The kernel's own positions do. They are in the first two
//! pages of the ring's mapping, the consumer's and the producer's (Documentation/bpf/ringbuf.rst); they count bytes and only
//! grow.

use std::sync::atomic::Ordering;

use aya::maps::Map;

use crate::{
    CaptureError,
    mapped::{Access, Mapped, PAGE},
};

/// The positions, shared with the kernel and with whoever reads the ring.
pub struct RingMarks {
    pages: Mapped,
}

/// The producer's, among the words of both pages.
const PRODUCER: usize = PAGE / size_of::<u64>();

impl RingMarks {
    /// Maps those of a ring.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let pages = Mapped::new(map, "EVENTS", 2 * PAGE, Access::Read)?;
        Ok(Self { pages })
    }

    /// Everything that programs have begun to write by now lies before it.
    pub fn reserved(&self) -> u64 {
        self.pages.word(PRODUCER).load(Ordering::Acquire)
    }

    /// Everything before it was taken.
    pub fn taken(&self) -> u64 {
        self.pages.word(0).load(Ordering::Acquire)
    }
}
