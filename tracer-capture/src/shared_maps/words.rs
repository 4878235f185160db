//! Words of a map, shared with the kernel. Reading and writing them needs no system call for a map; during such a call the kernel
//! would run no programs on that processor (see `losses.rs`).

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr, slice,
    sync::atomic::AtomicU64,
};

use aya::maps::Map;

use crate::CaptureError;

/// A page of x86-64; the kernel rounds maps up to it.
pub const PAGE: usize = 4096;

/// How the words are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are only read: a store would fault.
    Read,
    /// They are also written.
    Write,
}

/// A mapping of a map's words.
#[derive(Debug)]
pub struct SharedWords {
    base: *const AtomicU64,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and is read and written by atomic operations.
unsafe impl Send for SharedWords {}
// SAFETY: as above: threads share atomic words.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps the first `bytes` of the map called `name`: an array's values, or a ring buffer's positions.
    ///
    /// # Errors
    /// Returns the error of the mapping; [`CaptureError::Missing`] for another kind of map.
    pub fn new(map: &Map, name: &'static str, bytes: usize, access: Access) -> Result<Self, CaptureError> {
        let (Map::Array(data) | Map::RingBuf(data)) = map else {
            return Err(CaptureError::Missing(name));
        };
        Self::of_descriptor(data.fd().as_fd(), bytes, access)
    }

    /// Maps the first `bytes` of the map behind a descriptor.
    ///
    /// # Errors
    /// Returns the error of the mapping.
    pub fn of_descriptor(map: BorrowedFd<'_>, bytes: usize, access: Access) -> Result<Self, CaptureError> {
        let fd = map.as_raw_fd();
        let access = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked below.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(CaptureError::system("mapping a map", io::Error::last_os_error()));
        }
        Ok(Self {
            base: base.cast(),
            bytes,
        })
    }

    /// Returns one of its words, which must be inside the mapping.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the mapping, which lives as long as this value; every bit pattern is a valid atomic word.
        let words = unsafe { slice::from_raw_parts(self.base, self.bytes / size_of::<AtomicU64>()) };
        &words[at]
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which no code uses any more.
        unsafe { libc::munmap(self.base.cast_mut().cast(), self.bytes) };
    }
}
