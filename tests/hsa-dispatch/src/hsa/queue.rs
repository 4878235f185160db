//! User-mode queues, by the rules of the HSA System Architecture Specification: reserve an index, wait for room, write the packet,
//! release its header, ring the doorbell.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::types::{QUEUE_COOPERATIVE, QUEUE_MULTI, QUEUE_SINGLE, RawQueue, SignalHandle, Status, status};
use super::{Agent, Runtime};
use crate::error::{Error, Result};
use crate::packet::{PACKET_BYTES, Packet};

/// `INVALID`, the header of a slot that the GPU must not process yet.
const INVALID_HEADER: u32 = 1;

/// The threads that may submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Any thread at any time.
    Multi,
    /// One thread at a time.
    Single,
    /// The queue of cooperative kernels: one for each GPU and process, of a size that the runtime chooses.
    Cooperative,
}

/// The function that stores to the doorbell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DoorbellOp {
    /// `hsa_signal_store_screlease`, as HIP uses.
    #[default]
    Screlease,
    /// `hsa_signal_store_relaxed`, as many small clients use.
    Relaxed,
}

/// The first error that the runtime's callback received, or 0.
type Fault = AtomicU32;

/// A queue.
pub struct Queue {
    runtime: Arc<Runtime>,
    raw: *mut RawQueue,
    ring: *mut Packet,
    size: u32,
    id: u64,
    doorbell: SignalHandle,
    store: unsafe extern "C" fn(SignalHandle, i64),
    fault: Box<Fault>,
    alive: AtomicBool,
    /// Whether the queue is kept until the process exits.
    kept: bool,
}

// SAFETY: the runtime's functions on queues may be called from any thread.
unsafe impl Send for Queue {}
// SAFETY: as above; slots are written only by the thread that reserved them.
unsafe impl Sync for Queue {}

impl Queue {
    /// Creates a queue of `size` packets on `agent`.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call, as it must for sizes that are not a power of two.
    pub fn create(runtime: &Arc<Runtime>, agent: &Agent, size: u32, kind: QueueKind, op: DoorbellOp) -> Result<Self> {
        let fault = Box::new(Fault::new(status::SUCCESS));
        let kind = match kind {
            QueueKind::Multi => QUEUE_MULTI,
            QueueKind::Single => QUEUE_SINGLE,
            QueueKind::Cooperative => QUEUE_COOPERATIVE,
        };
        let mut raw = ptr::null_mut();
        let (no_private, no_group) = (u32::MAX, u32::MAX);
        let data = (&raw const *fault).cast_mut().cast();
        // SAFETY: the callback's data lives until the queue is destroyed, and `raw` is writable.
        let created = unsafe {
            (runtime.api.hsa_queue_create)(
                agent.handle,
                size,
                kind,
                Some(note_fault),
                data,
                no_private,
                no_group,
                &raw mut raw,
            )
        };
        runtime.check("hsa_queue_create", created)?;
        // SAFETY: this is the runtime's description of the queue, valid until the queue is destroyed.
        let described = unsafe { &*raw };
        Ok(Self {
            runtime: Arc::clone(runtime),
            raw,
            ring: described.base_address.cast(),
            size: described.size,
            id: described.id,
            doorbell: described.doorbell_signal,
            store: match op {
                DoorbellOp::Screlease => runtime.api.hsa_signal_store_screlease,
                DoorbellOp::Relaxed => runtime.api.hsa_signal_store_relaxed,
            },
            fault,
            alive: AtomicBool::new(true),
            kept: false,
        })
    }

    /// Makes the GPU write the times at which packets of this queue ran into their completion signals.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn profile(&self) -> Result<()> {
        // SAFETY: the queue belongs to the runtime and is not destroyed yet.
        let status = unsafe { (self.runtime.api.hsa_amd_profiling_set_profiler_enabled)(self.raw, 1) };
        self.runtime.check("hsa_amd_profiling_set_profiler_enabled", status)
    }

    /// Returns the same queue, to be kept until the process exits.
    #[must_use]
    pub fn kept(mut self) -> Self {
        self.kept = true;
        self
    }

    /// Returns the address of its `amd_queue_t`, by which tracer identifies it.
    #[must_use]
    pub fn handle(&self) -> u64 {
        self.raw as u64
    }

    /// Returns the number of the queue in this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of packets in its ring.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the signal that is its doorbell.
    pub(super) fn doorbell(&self) -> SignalHandle {
        self.doorbell
    }

    /// Reserves `count` consecutive indexes and returns the first.
    ///
    /// # Errors
    /// Fails if the queue was destroyed.
    pub fn reserve(&self, count: u64) -> Result<u64> {
        if !self.alive.load(Ordering::Relaxed) {
            return Err(Error::QueueDestroyed(self.name()));
        }
        // SAFETY: the queue is alive.
        Ok(unsafe { (self.runtime.api.hsa_queue_add_write_index_screlease)(self.raw, count) })
    }

    /// Returns the index of the first packet that the GPU has not taken yet.
    ///
    /// # Errors
    /// Fails if the queue was destroyed.
    pub fn read_index(&self) -> Result<u64> {
        if !self.alive.load(Ordering::Relaxed) {
            return Err(Error::QueueDestroyed(self.name()));
        }
        // SAFETY: the queue is alive.
        Ok(unsafe { (self.runtime.api.hsa_queue_load_read_index_scacquire)(self.raw) })
    }

    /// Writes `packets` from index `first` on.
    ///
    /// The first packet becomes valid last, so that the GPU sees all of them or none.
    ///
    /// # Safety
    /// The queue must be alive, the caller must have reserved these indexes, and their slots must be free. The memory that the
    /// packets refer to must stay valid until they are complete.
    pub unsafe fn write(&self, first: u64, packets: &[Packet]) {
        for (i, packet) in packets.iter().enumerate().rev() {
            let slot = self.slot(first + i as u64);
            // SAFETY: the slot is in the ring, and belongs to the caller until its header is valid.
            unsafe {
                AtomicU32::from_ptr(slot).store(INVALID_HEADER, Ordering::Relaxed);
                ptr::copy_nonoverlapping(packet.body().as_ptr(), slot.add(1), packet.body().len());
                AtomicU32::from_ptr(slot).store(packet.header(), Ordering::Release);
            }
        }
    }

    /// Notifies the GPU that the packets up to index `last` are ready.
    ///
    /// # Safety
    /// The queue must be alive, and the caller must have written packet `last`.
    pub unsafe fn ring(&self, last: u64) {
        // SAFETY: the doorbell lives as long as the queue.
        unsafe { (self.store)(self.doorbell, last.cast_signed()) };
    }

    /// Fails if the GPU has stopped the queue.
    ///
    /// # Errors
    /// Returns the status that the runtime's callback received.
    pub fn check(&self) -> Result<()> {
        match self.fault() {
            None => Ok(()),
            Some(status) => Err(Error::QueueFault {
                queue: self.to_string(),
                status,
                text: self.runtime.status_text(status),
            }),
        }
    }

    /// Returns the error with which the GPU stopped the queue.
    #[must_use]
    pub fn fault(&self) -> Option<Status> {
        Some(self.fault.load(Ordering::Acquire)).filter(|&fault| fault != status::SUCCESS)
    }

    /// Destroys the queue; later submissions are refused. No other thread may be submitting at the same time.
    ///
    /// # Errors
    /// Fails if the queue was destroyed already, or if the runtime refuses the call.
    pub fn destroy(&mut self) -> Result<()> {
        if !self.alive.swap(false, Ordering::AcqRel) {
            return Err(Error::QueueDestroyed(self.name()));
        }
        // SAFETY: the queue was alive, and `&mut self` excludes other submitters.
        let status = unsafe { (self.runtime.api.hsa_queue_destroy)(self.raw) };
        self.runtime.check("hsa_queue_destroy", status)
    }

    fn name(&self) -> String {
        format!("queue {:#x} (id {})", self.handle(), self.id)
    }

    #[expect(clippy::cast_possible_truncation, reason = "reduced modulo the ring's size first")]
    fn slot(&self, index: u64) -> *mut u32 {
        let position = (index % u64::from(self.size)) as usize;
        // SAFETY: the ring has `size` packets.
        unsafe { self.ring.byte_add(position * PACKET_BYTES) }.cast()
    }
}

impl fmt::Display for Queue {
    /// Prints the queue and its indexes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        let Ok(read) = self.read_index() else {
            return f.write_str(", destroyed");
        };
        // SAFETY: the queue is alive.
        let write = unsafe { (self.runtime.api.hsa_queue_load_write_index_relaxed)(self.raw) };
        write!(f, " of {} packets, write index {write}, read index {read}", self.size)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if !self.kept && self.alive.swap(false, Ordering::AcqRel) {
            // SAFETY: the queue was alive and has no other user.
            unsafe { (self.runtime.api.hsa_queue_destroy)(self.raw) };
        }
    }
}

/// The runtime's callback. A thread of the runtime calls it when the GPU stops the queue.
unsafe extern "C" fn note_fault(status: Status, _queue: *mut RawQueue, fault: *mut c_void) {
    // SAFETY: `Queue::create` passed a `Fault` that outlives the queue.
    let fault = unsafe { &*fault.cast::<Fault>() };
    // Only the first error counts; later ones are its consequence.
    let _ = fault.compare_exchange(status::SUCCESS, status, Ordering::AcqRel, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_kept() {
        let fault = Fault::new(status::SUCCESS);
        let data = (&raw const fault).cast_mut().cast();
        // SAFETY: `data` is a `Fault`.
        unsafe {
            note_fault(status::INVALID_PACKET_FORMAT, ptr::null_mut(), data);
            note_fault(status::INVALID_ARGUMENT, ptr::null_mut(), data);
        }
        assert_eq!(fault.into_inner(), status::INVALID_PACKET_FORMAT);
    }
}
