//! Queues in error: how the device notifies the runtime, so that the runtime calls its queue error callback.
//!
//! Since KFD 1.13, the driver takes the error code from the firmware's interrupt, writes it to the address that the context save
//! area's header gives (ErrorReason), and sets the event named there. Without that header, the firmware itself stores a code in the
//! queue's inactive signal. ROCr decodes the first in `AqlQueue::ExceptionHandler`, the second in
//! `AqlQueue::DynamicQueueEventsHandler`.

use serde_json::json;

use crate::ioctl::abi::CreateQueue;
use crate::process::Process;
use crate::signal;
use crate::truth::Truth;
use crate::vm::Fault;

/// KFD exception codes (`enum kfd_dbg_trap_exception_code`) that queues raise here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// An address at which nothing is mapped.
    ApertureViolation = 6,
    /// The dimensions or the grid size are not valid.
    DispatchDimInvalid = 16,
    /// More LDS than there is.
    GroupSegmentSizeInvalid = 17,
    /// The kernel object is not readable.
    DispatchCodeInvalid = 18,
    /// Unknown packet type.
    PacketUnsupported = 20,
    /// The work-group size is not valid.
    WorkGroupSizeInvalid = 21,
    /// Unknown vendor packet format.
    VendorUnsupported = 23,
}

impl Exception {
    /// Returns the bit in an exception mask: `KFD_EC_MASK`.
    pub fn mask(self) -> u64 {
        1 << (self as u64 - 1)
    }

    /// Returns the firmware's code in the queue's inactive signal.
    pub fn inactive_code(self) -> i64 {
        match self {
            Self::DispatchDimInvalid => 2,
            Self::GroupSegmentSizeInvalid => 4,
            Self::DispatchCodeInvalid => 8,
            Self::PacketUnsupported => 32,
            Self::WorkGroupSizeInvalid => 64,
            Self::VendorUnsupported => 256,
            Self::ApertureViolation => 0x2000_0000,
        }
    }
}

/// The reason why a queue stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueError {
    /// The exception reported to the runtime.
    pub exception: Exception,
    /// The reason, for the log.
    pub reason: String,
}

impl QueueError {
    /// Returns an error with its explanation.
    pub fn new(exception: Exception, reason: impl Into<String>) -> Self {
        Self {
            exception,
            reason: reason.into(),
        }
    }
}

impl From<Fault> for QueueError {
    fn from(Fault(va): Fault) -> Self {
        Self::new(Exception::ApertureViolation, format!("nothing is mapped at {va:#x}"))
    }
}

/// Offsets in `HsaUserContextSaveAreaHeader` (libhsakmt), at the start of the context save area.
const ERROR_REASON: u64 = 24;
const ERROR_EVENT_ID: u64 = 32;

/// Offsets in `amd_queue_t`.
const WRITE_DISPATCH_ID: u64 = 0x38;
const QUEUE_INACTIVE_SIGNAL: u64 = 0xc0;

/// Notifies the runtime. A client whose memory supports neither way is not notified, because it has no handler.
pub fn raise(truth: &Truth, process: &Process, queue: &CreateQueue, index: u64, error: &QueueError) {
    log::warn!(
        "queue {} of {}: {:?}: {}",
        queue.queue_id,
        process.pid,
        error.exception,
        error.reason
    );
    truth
        .counts
        .queue_errors
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    truth.line(|| {
        json!({
            "ev": "queue_error", "pid": process.pid, "queue_id": queue.queue_id, "index": index,
            "exception": format!("{:?}", error.exception), "code": error.exception as u32, "reason": error.reason,
            "time_ns": crate::clock::monotonic_ns(),
        })
    });
    if raise_by_driver(process, queue, error.exception).is_none() && raise_by_firmware(process, queue, error).is_err() {
        log::warn!(
            "queue {} of {}: the runtime cannot be told",
            queue.queue_id,
            process.pid
        );
    }
}

fn raise_by_driver(process: &Process, queue: &CreateQueue, exception: Exception) -> Option<()> {
    let header = queue.ctx_save_restore_address;
    if header == 0 {
        return None;
    }
    let reason = process
        .space
        .read_u64(header.checked_add(ERROR_REASON)?)
        .ok()
        .filter(|&reason| reason != 0)?;
    let event = process
        .space
        .read_u32(header + ERROR_EVENT_ID)
        .ok()
        .filter(|&event| event != 0)?;
    process.space.write(reason, &exception.mask().to_le_bytes()).ok()?;
    process.events.interrupt(&process.space, event);
    Some(())
}

fn raise_by_firmware(process: &Process, queue: &CreateQueue, error: &QueueError) -> Result<(), Fault> {
    let amd_queue = queue.write_pointer_address.wrapping_sub(WRITE_DISPATCH_ID);
    let inactive = process.space.read_u64(amd_queue.wrapping_add(QUEUE_INACTIVE_SIGNAL))?;
    signal::store(
        &process.space,
        &process.events,
        inactive,
        error.exception.inactive_code(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_equal_the_codes_that_rocr_decodes() {
        assert_eq!(Exception::PacketUnsupported.mask(), 0x8_0000);
        assert_eq!(Exception::PacketUnsupported.inactive_code(), 0x20);
        assert_eq!(Exception::VendorUnsupported.mask(), 1 << 22);
        assert_eq!(Exception::ApertureViolation.mask(), 0x20);
    }
}
