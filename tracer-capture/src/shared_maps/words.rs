//! Words of a map, shared with the kernel. Reading and writing them needs no system call for a map; during such a call the kernel
//! would run no programs on that processor (see `losses.rs`).

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr, slice,
    sync::atomic::AtomicU64,
};

use aya::maps::Map;
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

use crate::CaptureError;

/// A page of x86-64; the kernel rounds maps up to it.
pub const PAGE: usize = 4096;

/// Creates memory that processes share by its descriptor, as they share a map.
///
/// # Errors
/// Returns the error of the system calls.
pub fn memory(name: &str, bytes: usize) -> Result<OwnedFd, CaptureError> {
    let failed = |error| CaptureError::system("creating shared memory", error);
    let memory = memfd_create(name, MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(&memory, bytes as u64).map_err(failed)?;
    Ok(memory)
}

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
    /// The mapping, which exists as long as this value: no reference to it outlives the value.
    words: &'static [AtomicU64],
}

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
        let access = match access {
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, map, 0) };
        let base = base.map_err(|error| CaptureError::system("mapping a map", error))?;
        // SAFETY: the mapping, which is aligned to pages; every bit pattern is a valid atomic word.
        let words = unsafe { slice::from_raw_parts(base.cast::<AtomicU64>(), bytes / size_of::<AtomicU64>()) };
        Ok(Self { words })
    }

    /// Returns one of its words, which must be inside the mapping.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        &self.words[at]
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which no code uses any more.
        let _ = unsafe { munmap(self.words.as_ptr().cast_mut().cast(), size_of_val(self.words)) };
    }
}
