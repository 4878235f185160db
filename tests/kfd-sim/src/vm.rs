//! A client's address space as the GPU sees it. GPU addresses equal CPU addresses, except for host memory that a runtime before
//! ROCr 6 registered with the driver, which has an address of its own.
//!
//! Buffers in the render node's memory file are accessed directly. Everything else (user pointers: by default ROCr's rings, signals
//! and kernel arguments) is the client's own memory and is accessed with `process_vm_readv/writev`.

mod aliases;
mod batch;
mod remote;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use self::aliases::Aliases;
pub use self::batch::WriteBatch;
use self::remote::{read_process, write_process};
use crate::memory::SharedFile;

/// An address that is backed neither by a buffer nor by the client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault(pub u64);

/// The number of bytes moved through a bounce buffer at a time.
const CHUNK: usize = 256 * 1024;

/// The memory at one client's GPU addresses.
pub struct AddressSpace {
    pid: i32,
    file: Arc<SharedFile>,
    /// Buffers in the memory file: start -> (end, offset in the file).
    buffers: RwLock<BTreeMap<u64, (u64, u64)>>,
    /// Client memory at other addresses.
    aliases: Aliases,
    /// Serialises read-modify-writes of client memory among the simulator's own threads.
    locks: [Mutex<()>; 64],
}

impl AddressSpace {
    /// Returns the address space of process `pid`, with no buffers yet.
    pub fn new(pid: i32, file: Arc<SharedFile>) -> Self {
        Self {
            pid,
            file,
            buffers: RwLock::default(),
            aliases: Aliases::default(),
            locks: std::array::from_fn(|_| Mutex::new(())),
        }
    }

    /// Returns whether the process still has its memory.
    pub fn exists(&self) -> bool {
        remote::has_memory(self.pid)
    }

    /// Makes `bytes` at `offset` of the memory file visible at `va`.
    pub fn insert(&self, va: u64, bytes: u64, offset: u64) {
        let mut buffers = self.buffers.write().unwrap_or_else(PoisonError::into_inner);
        buffers.insert(va, (va.saturating_add(bytes), offset));
    }

    /// Makes `bytes` of the client's memory at `own` visible at `va` too.
    pub fn alias(&self, va: u64, bytes: u64, own: u64) {
        self.aliases.insert(va, bytes, own);
    }

    /// Removes the buffer or alias at `va`.
    pub fn remove(&self, va: u64) {
        self.buffers.write().unwrap_or_else(PoisonError::into_inner).remove(&va);
        self.aliases.remove(va);
    }

    /// Returns the simulator's own address of `len` bytes at `va`, if one buffer holds them all.
    pub fn direct(&self, va: u64, len: u64) -> Option<*mut u8> {
        let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
        let (&start, &(end, offset)) = buffers.range(..=va).next_back()?;
        if va.checked_add(len)? > end {
            return None;
        }
        self.file.at(offset + (va - start), len)
    }

    /// Reads `out.len()` bytes.
    pub fn read(&self, va: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(from) = self.direct(va, out.len() as u64) {
            // SAFETY: `direct` guarantees `out.len()` readable bytes, and `out` is a separate local buffer.
            unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
            return Ok(());
        }
        read_process(self.pid, self.aliases.own(va), out).map_err(|_| Fault(va))
    }

    /// Writes all of `bytes`.
    pub fn write(&self, va: u64, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(to) = self.direct(va, bytes.len() as u64) {
            store(to, bytes);
            return Ok(());
        }
        let mut remote = vec![libc::iovec {
            iov_base: self.aliases.own(va) as *mut libc::c_void,
            iov_len: bytes.len(),
        }];
        write_process(self.pid, bytes, &mut remote).map_err(|_| Fault(va))
    }

    /// Reads a little-endian u64.
    pub fn read_u64(&self, va: u64) -> Result<u64, Fault> {
        if va.is_multiple_of(8)
            && let Some(at) = self.direct(va, 8)
        {
            // SAFETY: valid for 8 bytes, and aligned: file offsets and buffer starts are page aligned and `va` is a multiple of 8.
            return Ok(unsafe { AtomicU64::from_ptr(at.cast()) }.load(Ordering::Acquire));
        }
        let mut bytes = [0; 8];
        self.read(va, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a little-endian u32.
    pub fn read_u32(&self, va: u64) -> Result<u32, Fault> {
        let mut bytes = [0; 4];
        self.read(va, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Executes the batch in order and empties it. Adjacent writes to client memory share one system call.
    pub fn submit(&self, batch: &mut WriteBatch) -> Result<(), Fault> {
        let result = self.submit_parts(batch);
        batch.data.clear();
        batch.parts.clear();
        result
    }

    fn submit_parts(&self, batch: &WriteBatch) -> Result<(), Fault> {
        let mut remote: Vec<libc::iovec> = Vec::with_capacity(batch.parts.len());
        let mut from = 0;
        let mut offset = 0;
        for &(va, len) in &batch.parts {
            let bytes = &batch.data[offset..offset + len];
            if let Some(to) = self.direct(va, len as u64) {
                write_process(self.pid, &batch.data[from..offset], &mut remote).map_err(|_| Fault(va))?;
                store(to, bytes);
                from = offset + len;
            } else {
                remote.push(libc::iovec {
                    iov_base: self.aliases.own(va) as *mut libc::c_void,
                    iov_len: len,
                });
            }
            offset += len;
        }
        let fault = batch.parts.last().map_or(0, |&(va, _)| va);
        write_process(self.pid, &batch.data[from..offset], &mut remote).map_err(|_| Fault(fault))
    }

    /// Adds to the u64 at `va`, and returns the previous value.
    ///
    /// In client memory this is atomic only against the simulator, not against the client's own atomics on the same word.
    pub fn add_u64(&self, va: u64, delta: u64) -> Result<u64, Fault> {
        if va.is_multiple_of(8)
            && let Some(at) = self.direct(va, 8)
        {
            // SAFETY: valid for 8 bytes and aligned, as in `read_u64`.
            return Ok(unsafe { AtomicU64::from_ptr(at.cast()) }.fetch_add(delta, Ordering::AcqRel));
        }
        let _guard = self.lock(va);
        let old = self.read_u64(va)?;
        self.write(va, &old.wrapping_add(delta).to_le_bytes())?;
        Ok(old)
    }

    /// Adds to the u32 at `va`, and returns the previous value. It is as atomic as `add_u64`.
    pub fn add_u32(&self, va: u64, delta: u32) -> Result<u32, Fault> {
        if va.is_multiple_of(4)
            && let Some(at) = self.direct(va, 4)
        {
            // SAFETY: valid for 4 bytes, and aligned as in `read_u64`.
            return Ok(unsafe { AtomicU32::from_ptr(at.cast()) }.fetch_add(delta, Ordering::AcqRel));
        }
        let _guard = self.lock(va);
        let old = self.read_u32(va)?;
        self.write(va, &old.wrapping_add(delta).to_le_bytes())?;
        Ok(old)
    }

    /// Returns the lock for a read-modify-write of client memory at `va`.
    pub fn lock(&self, va: u64) -> std::sync::MutexGuard<'_, ()> {
        self.locks[(va >> 6) as usize % self.locks.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies `len` bytes between two addresses of the client.
    pub fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), Fault> {
        let from = self.direct(src, len);
        let to = self.direct(dst, len);
        match (from, to) {
            // SAFETY: `direct` guarantees `len` bytes at both; `copy` allows them to overlap.
            (Some(from), Some(to)) => unsafe { std::ptr::copy(from, to, len as usize) },
            // SAFETY: `direct` guarantees `len` readable bytes.
            (Some(from), None) => self.write(dst, unsafe { std::slice::from_raw_parts(from, len as usize) })?,
            // SAFETY: `direct` guarantees `len` writable bytes.
            (None, Some(to)) => self.read(src, unsafe { std::slice::from_raw_parts_mut(to, len as usize) })?,
            (None, None) => {
                let mut bounce = vec![0; CHUNK.min(len as usize)];
                let mut done = 0;
                while done < len {
                    let part = bounce.len().min((len - done) as usize);
                    self.read(src + done, &mut bounce[..part])?;
                    self.write(dst + done, &bounce[..part])?;
                    done += part as u64;
                }
            }
        }
        Ok(())
    }

    /// Writes `count` copies of a 32-bit value.
    pub fn fill_u32(&self, dst: u64, value: u32, count: u64) -> Result<(), Fault> {
        let pattern: Vec<u8> = value
            .to_le_bytes()
            .into_iter()
            .cycle()
            .take(CHUNK.min(count as usize * 4))
            .collect();
        let mut done = 0;
        while done < count * 4 {
            let part = (pattern.len() as u64).min(count * 4 - done);
            self.write(dst.checked_add(done).ok_or(Fault(dst))?, &pattern[..part as usize])?;
            done += part;
        }
        Ok(())
    }
}

/// Stores words whole, because a client that polls them must see them whole.
fn store(to: *mut u8, bytes: &[u8]) {
    match *bytes {
        [a, b, c, d, e, f, g, h] if to.addr().is_multiple_of(8) => {
            let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            // SAFETY: the caller guarantees 8 writable bytes, and the address is aligned.
            unsafe { AtomicU64::from_ptr(to.cast()) }.store(value, Ordering::Release);
        }
        [a, b, c, d] if to.addr().is_multiple_of(4) => {
            // SAFETY: the caller guarantees 4 writable bytes, and the address is aligned.
            unsafe { AtomicU32::from_ptr(to.cast()) }.store(u32::from_le_bytes([a, b, c, d]), Ordering::Release);
        }
        [a] => {
            // SAFETY: the caller guarantees the byte.
            unsafe { AtomicU8::from_ptr(to) }.store(a, Ordering::Release);
        }
        // SAFETY: the caller guarantees `bytes.len()` writable bytes, and `bytes` is a separate local buffer.
        _ => unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_space() -> (AddressSpace, u64) {
        let file = Arc::new(SharedFile::new("test", 1 << 30).unwrap());
        let offset = file.allocate(1 << 16).unwrap();
        let space = AddressSpace::new(std::process::id() as i32, file);
        let va = 0x7000_0000_0000;
        space.insert(va, 1 << 16, offset);
        (space, va)
    }

    #[test]
    fn buffers_and_client_memory_look_alike() {
        let (space, va) = own_space();
        let mut own = [0u8; 16];
        let own_va = own.as_mut_ptr() as u64;
        let mut batch = WriteBatch::default();
        batch.push(own_va, &7u64.to_le_bytes());
        batch.push(va + 8, &8u64.to_le_bytes());
        batch.push(own_va + 8, &9u64.to_le_bytes());
        space.submit(&mut batch).unwrap();
        assert!(batch.is_empty());
        assert_eq!(space.read_u64(va + 8), Ok(8));
        assert_eq!(space.read_u64(own_va), Ok(7));
        space.copy(va + 64, own_va, 16).unwrap();
        assert_eq!(space.read_u64(va + 72), Ok(9));
        assert_eq!(space.add_u64(va + 72, u64::MAX), Ok(9));
        assert_eq!(space.add_u64(own_va, 1), Ok(7));
        assert_eq!((space.read_u64(va + 72), space.read_u64(own_va)), (Ok(8), Ok(8)));
        space.fill_u32(va, 5, 3).unwrap();
        assert_eq!(space.read_u32(va + 8), Ok(5));
    }

    #[test]
    fn wild_addresses_fault() {
        let (space, va) = own_space();
        for wild in [0, 8, va + (1 << 16), va + (1 << 16) - 4, u64::MAX - 4] {
            assert_eq!(space.read_u64(wild), Err(Fault(wild)));
            assert_eq!(space.write(wild, &[0; 8]), Err(Fault(wild)));
        }
        space.remove(va);
        assert_eq!(space.read_u64(va), Err(Fault(va)));
    }
}
