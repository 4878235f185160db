//! The buffer of a processor, which the kernel writes and this process reads.

use std::{
    io,
    os::fd::OwnedFd,
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::shared_maps::words::PAGE;

/// The length of a record's header, bytes: `struct perf_event_header`.
pub const HEADER: usize = 8;
/// The mapped buffer of an event, into which other events may write, too.
pub struct Ring {
    /// The page of positions, and the data behind it.
    base: NonNull<u8>,
    /// Bytes of data: a power of two.
    size: usize,
    /// The position up to which this process has read.
    tail: u64,
    /// The event that the buffer belongs to.
    pub event: OwnedFd,
}

// SAFETY: the mapping belongs to this value, and one thread at a time has it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a buffer of `size` bytes, a power of two, for an event.
    ///
    /// # Errors
    /// Fails with the kernel's error: EPERM if this process may not lock so much memory.
    pub fn new(event: OwnedFd, size: usize) -> io::Result<Self> {
        let (length, access) = (PAGE + size, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &event, 0) }?;
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            size,
            tail: 0,
            event,
        })
    }

    /// Returns the position up to which the kernel has written whole records.
    pub fn head(&self) -> u64 {
        let head = self.position(std::mem::offset_of!(perf_event_mmap_page, data_head));
        let head = head.load(Ordering::Acquire);
        // The kernel's manual asks for a barrier between this read and those of the data.
        fence(Ordering::Acquire);
        head
    }

    /// Returns the position up to which this process has read.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Gives the data before a position back to the kernel.
    pub fn read_to(&mut self, position: u64) {
        self.tail = position;
        let tail = self.position(std::mem::offset_of!(perf_event_mmap_page, data_tail));
        tail.store(position, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word in the first page, which lives as long as this value. Both sides access it as a whole word.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Returns the record at a position between tail and head. A record that crosses the end of the buffer is put together in
    /// `scratch`. Returns `None` if its length makes no sense.
    pub fn record<'a>(&'a self, position: u64, head: u64, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let start = position as usize & (self.size - 1);
        // A record's length is a multiple of 8, so its header never crosses the end.
        let header = self.data().get(start..start + HEADER)?;
        let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        let fits = length >= HEADER && length.is_multiple_of(8) && length as u64 <= head.saturating_sub(position);
        if !fits {
            return None;
        }
        if let Some(whole) = self.data().get(start..start + length) {
            return Some(whole);
        }
        let (first, rest) = (self.data().get(start..)?, start + length - self.size);
        scratch.clear();
        scratch.extend_from_slice(first);
        scratch.extend_from_slice(self.data().get(..rest)?);
        Some(scratch)
    }

    /// Returns the data. The kernel writes only outside of what is between tail and head.
    fn data(&self) -> &[u8] {
        // SAFETY: the mapping has `size` bytes behind its first page, and lives as long as this value.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(PAGE), self.size) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which no code uses any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), PAGE + self.size) };
    }
}
