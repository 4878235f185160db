//! The memory behind the device files: one sparse file per device, mapped completely in the simulator.
//!
//! FUSE passthrough lets the client's `mmap` of a device file use the same pages. Both sides then share memory as a CPU and a GPU
//! with a large BAR do: coherent, and with real atomics. Where FUSE has no passthrough, the simulator maps the device file itself
//! ([`SharedFile::adopt`]). Both sides then use the pages of the kernel's cache, and the memory file only holds what the kernel
//! writes back.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// The unit of allocation.
pub const PAGE: u64 = 4096;

/// Rounds up to whole pages.
pub fn page_up(bytes: u64) -> u64 {
    bytes.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// A sparse memory file, mapped shared and completely.
pub struct SharedFile {
    file: File,
    base: *mut u8,
    len: u64,
    space: Mutex<Extents>,
}

// SAFETY: `base` points to a mapping that lives as long as the value. All access through it is by raw copies or atomics, as memory
// shared with another process needs anyway.
unsafe impl Send for SharedFile {}
// SAFETY: as for Send.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// Creates a file of `len` bytes. Its pages are allocated when they are first touched.
    pub fn new(name: &str, len: u64) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: `name` is NUL-terminated; the returned descriptor is checked below.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just created and has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len)?;
        Self::of(file, len)
    }

    /// Maps `len` bytes of a file that has as many. Nothing else may be in it, and it must free pages by `MADV_REMOVE`.
    pub fn of(file: File, len: u64) -> io::Result<Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked below.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len as usize, prot, flags, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            file,
            base: base.cast(),
            len,
            space: Mutex::new(Extents::new(len)),
        })
    }

    /// Maps the device file that this memory backs, at the same addresses. No memory may be in use yet.
    pub fn adopt(&self, device: &File) -> io::Result<()> {
        let (prot, len) = (libc::PROT_READ | libc::PROT_WRITE, self.len as usize);
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: replaces exactly the mapping that this value owns with one of the same length and protection.
        let base = unsafe { libc::mmap(self.base.cast(), len, prot, flags, device.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Serves a read of the kernel into its cache.
    pub fn read(&self, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.file.read_exact_at(&mut buffer, offset)?;
        Ok(buffer)
    }

    /// Serves a write of the kernel from its cache.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Frees pages of the memory file. They then read as zero.
    pub fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a plain file operation on a descriptor that this value owns.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset as i64, bytes as i64) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reserves `bytes` (rounded up to pages). Returns the offset in the file.
    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        self.space.lock().ok()?.take(page_up(bytes))
    }

    /// Releases memory. Its pages are freed, and read as zero when they are allocated again.
    pub fn release(&self, offset: u64, bytes: u64) {
        // The file that is mapped frees the pages: the memory file, or the device file with its pages in the kernel's cache.
        // SAFETY: the extent is inside this value's mapping, and released memory is not in use.
        let freed = self
            .at(offset, page_up(bytes))
            .is_some_and(|at| unsafe { libc::madvise(at.cast(), page_up(bytes) as usize, libc::MADV_REMOVE) == 0 });
        if !freed {
            log::error!("free {bytes} bytes at {offset:#x}: {}", io::Error::last_os_error());
        }
        if let Ok(mut space) = self.space.lock() {
            space.give(offset, page_up(bytes));
        }
    }

    /// Returns the address of `len` bytes at `offset`, if they are inside the file.
    pub fn at(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        // SAFETY: `offset..end` is inside the mapping of `self.len` bytes.
        (end <= self.len).then(|| unsafe { self.base.add(offset as usize) })
    }
}

/// A part of a memory file. It is released when nobody has it any more.
pub struct Extent {
    file: Arc<SharedFile>,
    offset: u64,
    len: u64,
    /// What a client noted at the buffer, for all that share it.
    notes: Mutex<Vec<u8>>,
}

impl Extent {
    /// Reserves `len` bytes (rounded up to pages).
    pub fn allocate(file: &Arc<SharedFile>, len: u64) -> Option<Self> {
        let offset = file.allocate(len)?;
        Some(Self {
            file: Arc::clone(file),
            offset,
            len,
            notes: Mutex::default(),
        })
    }

    /// Returns what was noted last at the buffer: its metadata.
    pub fn notes(&self) -> Vec<u8> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes something at the buffer.
    pub fn note(&self, notes: &[u8]) {
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = notes.to_vec();
    }

    /// Returns the offset in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the address of `len` bytes at `offset` of the extent, if they are inside.
    pub fn at(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        let inside = end <= page_up(self.len);
        inside.then(|| self.file.at(self.offset + offset, len)).flatten()
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.file.release(self.offset, self.len);
    }
}

impl AsFd for SharedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping created in `new`, of the same length, which is not in use any more.
        unsafe { libc::munmap(self.base.cast(), self.len as usize) };
    }
}

/// Free extents by offset: first fit, with adjacent extents joined.
#[derive(Debug)]
struct Extents(BTreeMap<u64, u64>);

impl Extents {
    /// Leaves the first page unused, because an offset of 0 would look like "no offset".
    fn new(len: u64) -> Self {
        Self(BTreeMap::from([(PAGE, len - PAGE)]))
    }

    fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(PAGE);
        let (&offset, &free) = self.0.iter().find(|&(_, &free)| free >= bytes)?;
        self.0.remove(&offset);
        if free > bytes {
            self.0.insert(offset + bytes, free - bytes);
        }
        Some(offset)
    }

    fn give(&mut self, offset: u64, bytes: u64) {
        let (mut offset, mut bytes) = (offset, bytes.max(PAGE));
        if let Some(next) = self.0.remove(&(offset + bytes)) {
            bytes += next;
        }
        if let Some((&before, &len)) = self.0.range(..offset).next_back()
            && before + len == offset
        {
            (offset, bytes) = (before, len + bytes);
        }
        self.0.insert(offset, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_reused_and_joined() {
        let mut space = Extents::new(16 * PAGE);
        let a = space.take(PAGE).unwrap();
        let b = space.take(2 * PAGE).unwrap();
        let c = space.take(PAGE).unwrap();
        assert_eq!((a, b, c), (PAGE, 2 * PAGE, 4 * PAGE));
        space.give(a, PAGE);
        space.give(c, PAGE);
        space.give(b, 2 * PAGE);
        assert_eq!(space.0, BTreeMap::from([(PAGE, 15 * PAGE)]));
        assert_eq!(space.take(16 * PAGE), None);
    }

    #[test]
    fn an_extent_ends_at_its_last_page() {
        let file = Arc::new(SharedFile::new("test", 1 << 30).unwrap());
        let extent = Extent::allocate(&file, 5000).unwrap();
        assert_eq!(extent.len(), 5000);
        assert_eq!(extent.at(0, 8192), file.at(extent.offset(), 8192));
        assert_eq!(extent.at(4096, 4097), None);
        assert_eq!(extent.at(u64::MAX, 2), None);
    }

    #[test]
    fn released_memory_reads_as_zero() {
        let file = SharedFile::new("test", 1 << 30).unwrap();
        let offset = file.allocate(8).unwrap();
        let at = file.at(offset, 8).unwrap().cast::<u64>();
        // SAFETY: `at` is valid, aligned and private to this test.
        unsafe { at.write_volatile(7) };
        file.release(offset, 8);
        // SAFETY: as above.
        assert_eq!(unsafe { at.read_volatile() }, 0);
        assert!(file.at(1 << 30, 1).is_none());
        assert!(file.at(u64::MAX, 2).is_none());
    }
}
