//! How far the ring of records has been filled and emptied.
//!
//! A reader of the ring stops at a record that a program has reserved and not written yet, as if nothing came behind it:
//! that nothing could be read does not say that nothing had come. The kernel's own positions do. They are in the first two
//! pages of the ring's mapping, the consumer's and the producer's (Documentation/bpf/ringbuf.rst); they count bytes and only
//! grow.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use aya::maps::Map;

use crate::CaptureError;

/// A page of x86-64.
const PAGE: usize = 4096;

/// The positions, shared with the kernel and with whoever reads the ring.
pub struct RingMarks {
    consumer: *const AtomicU64,
}

// SAFETY: the mapping belongs to this value alone, and is read by atomic loads.
unsafe impl Send for RingMarks {}

impl RingMarks {
    /// Maps those of a ring.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let Map::RingBuf(data) = map else {
            return Err(CaptureError::Missing("EVENTS"));
        };
        let fd = data.fd().as_fd().as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked below.
        let base = unsafe { libc::mmap(ptr::null_mut(), 2 * PAGE, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(CaptureError::system("mapping a ring", io::Error::last_os_error()));
        }
        Ok(Self { consumer: base.cast() })
    }

    /// Everything that programs have begun to write by now lies before it.
    pub fn reserved(&self) -> u64 {
        // SAFETY: the start of the mapping's second page, which lives as long as this value.
        unsafe { &*self.consumer.byte_add(PAGE) }.load(Ordering::Acquire)
    }

    /// Everything before it was taken.
    pub fn taken(&self) -> u64 {
        // SAFETY: the start of the mapping.
        unsafe { &*self.consumer }.load(Ordering::Acquire)
    }
}

impl Drop for RingMarks {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.consumer.cast_mut().cast(), 2 * PAGE) };
    }
}
