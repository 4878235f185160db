//! Submission without the runtime: accesses the write index and the doorbell's register as the runtime itself does.
//!
//! No function of the runtime runs, so no probe on one is hit. IREE's AMD GPU driver submits in this way, and so does CLR with
//! `DEBUG_CLR_DIRECT_DOORBELL=1`.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::Queue;
use crate::error::{Error, Result};

/// `AMD_SIGNAL_KIND_DOORBELL` (`amd_hsa_signal.h`): the doorbell is a 64-bit register.
const KIND_DOORBELL: i64 = -1;

/// The offset of `write_dispatch_id` in `amd_queue_t` (`amd_hsa_queue.h`), the same in every release.
const WRITE_DISPATCH_ID: usize = 0x38;

/// The start of `amd_signal_t` (`amd_hsa_signal.h`), for a doorbell.
#[repr(C)]
struct RawSignal {
    kind: i64,
    hardware_doorbell_ptr: *mut u64,
}

/// A queue's write index and doorbell, in this process's memory.
pub struct Direct<'q> {
    write_index: &'q AtomicU64,
    doorbell: *mut u64,
}

impl<'q> Direct<'q> {
    /// Finds the write index and the doorbell.
    ///
    /// # Errors
    /// Fails if the doorbell is of a kind that only the runtime can ring.
    pub fn of(queue: &'q Queue) -> Result<Self> {
        let signal = ptr::with_exposed_provenance::<RawSignal>(queue.doorbell().handle as usize);
        // SAFETY: the handle of a signal is the address of its `amd_signal_t`, which lives as long as the queue.
        let RawSignal {
            kind,
            hardware_doorbell_ptr,
        } = unsafe { signal.read() };
        if kind != KIND_DOORBELL {
            return Err(Error::Unexpected(format!(
                "the doorbell of {queue} is a signal of kind {kind}, not a register"
            )));
        }
        let queue = ptr::with_exposed_provenance_mut::<u8>(queue.handle() as usize);
        // SAFETY: the queue's `amd_queue_t` lives as long as the queue; the index is only changed by atomic operations.
        let write_index = unsafe { AtomicU64::from_ptr(queue.add(WRITE_DISPATCH_ID).cast()) };
        Ok(Self {
            write_index,
            doorbell: hardware_doorbell_ptr,
        })
    }

    /// Reserves `count` consecutive indexes and returns the first.
    pub fn reserve(&self, count: u64) -> u64 {
        self.write_index.fetch_add(count, Ordering::AcqRel)
    }

    /// Stores to the doorbell's register: the packets up to index `last` are ready.
    ///
    /// # Safety
    /// The caller must have written packet `last`.
    pub unsafe fn ring(&self, last: u64) {
        // The packets must be visible before the store, which may go to write-combining memory.
        fence(Ordering::SeqCst);
        // SAFETY: the register is mapped while the queue, which is borrowed, is alive.
        unsafe { self.doorbell.write_volatile(last) };
    }
}
