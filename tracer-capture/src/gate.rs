//! Whether what traced processes submit counts, and whether processes enter by themselves: one word that the programs read.
//!
//! Mapped, so that opening it is a store and no system call for a map: see `losses.rs`.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use aya::maps::Map;
use tracer_common::record::gate;

use crate::CaptureError;

/// The map COUNTING, shared with the kernel.
pub struct Gate {
    word: *const AtomicU64,
}

// SAFETY: the mapping belongs to this value alone, and is written by atomic stores.
unsafe impl Send for Gate {}

/// The kernel rounds the map up to a page.
const BYTES: usize = 4096;

impl Gate {
    /// Maps it. It is shut.
    ///
    /// # Errors
    /// What mapping says.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let Map::Array(data) = map else {
            return Err(CaptureError::Missing("COUNTING"));
        };
        let fd = data.fd().as_fd().as_raw_fd();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked below.
        let base = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(CaptureError::system("mapping a switch", io::Error::last_os_error()));
        }
        Ok(Self { word: base.cast() })
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the mapping's first word, which lives as long as this value.
        unsafe { &*self.word }
    }

    /// From now on it counts.
    pub fn open(&self) {
        self.word().fetch_or(gate::COUNTS, Ordering::SeqCst);
    }

    /// From now on processes that begin to use the KFD become traced by that, if the programs were loaded for it.
    pub fn admit(&self) {
        self.word().fetch_or(gate::ADMITS, Ordering::SeqCst);
    }

    /// From now on none does.
    pub fn admit_no_more(&self) {
        self.word().fetch_and(!gate::ADMITS, Ordering::SeqCst);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.word.cast_mut().cast(), BYTES) };
    }
}
