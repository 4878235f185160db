//! Bytes in a memory file that no process can change any more, including its creator.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr,
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create},
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

/// Without these seals, another process that has the file could change its bytes or length while they are used.
const FINAL: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW);
/// The only flags with which confined processes may create memory files.
pub const MEMFD_FLAGS: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);

/// A sealed memory file, mapped.
#[derive(Debug)]
pub struct Sealed {
    file: OwnedFd,
    start: *mut std::ffi::c_void,
    len: usize,
}

// SAFETY: the mapping is read-only and its file sealed, so that its bytes never change.
unsafe impl Send for Sealed {}
// SAFETY: as above.
unsafe impl Sync for Sealed {}

impl Sealed {
    /// Takes a memory file from another process.
    ///
    /// # Errors
    /// Fails with `InvalidData` if the file is not a memory file, is not sealed, or has more than `most` bytes.
    pub fn take(file: OwnedFd, most: u64) -> io::Result<Self> {
        let refused = || io::Error::from(io::ErrorKind::InvalidData);
        // Files of other kinds have no seals. Before this check, nothing is requested that a file system might have to answer.
        let seals = fcntl_get_seals(&file).map_err(|_| refused())?;
        if !seals.contains(FINAL) {
            return Err(refused());
        }
        let len = u64::try_from(fstat(&file)?.st_size).map_err(|_| refused())?;
        if len > most {
            return Err(refused());
        }
        let len = usize::try_from(len).map_err(|_| refused())?;
        let start = if len == 0 {
            ptr::null_mut()
        } else {
            // SAFETY: this creates a new mapping at an address that the kernel chooses.
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)? }
        };
        Ok(Self { file, start, len })
    }

    /// Creates a sealed copy of `bytes`.
    ///
    /// # Errors
    /// Fails with EMFILE or ENOMEM.
    pub fn copy_of(bytes: &[u8]) -> io::Result<Self> {
        Self::take(file_of(bytes)?, bytes.len() as u64)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start` is a mapping of `len` bytes that lives as long as `self`; the file can't shrink or change.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) }
    }
}

impl AsFd for Sealed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping is this value's own, and no slice of it outlives the value.
            let _ = unsafe { munmap(self.start, self.len) };
        }
    }
}

/// Creates a sealed memory file with these bytes.
pub fn file_of(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(new_file()?);
    file.write_all(bytes)?;
    seal(file.into())
}

/// Creates an empty memory file that can be sealed.
pub fn new_file() -> io::Result<OwnedFd> {
    Ok(memfd_create("tracer", MEMFD_FLAGS)?)
}

/// Seals a memory file, so that it can't change any more.
pub fn seal(file: OwnedFd) -> io::Result<OwnedFd> {
    fcntl_add_seals(&file, FINAL | SealFlags::SEAL)?;
    Ok(file)
}
