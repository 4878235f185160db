//! Trace events of the kernel driver (trace system `amdgpu`).

use super::{Header, NAME_LEN};
use crate::offset::ABSENT;

/// The event: low byte of [`Header::flags`] in a [`DriverEvent`].
pub mod driver_event_kind {
    /// amdgpu_cs_ioctl: a client's command submission, in the submitter's context.
    pub const CS_IOCTL: u16 = 1;
    /// amdgpu_sched_run_job: the driver takes a job from its scheduler.
    pub const SCHED_RUN_JOB: u16 = 2;
    /// amdgpu_bo_move: a buffer moves to other memory.
    pub const BO_MOVE: u16 = 3;
    /// amdgpu_vm_flush: a job flushes the translations of an address space.
    pub const VM_FLUSH: u16 = 4;
    /// amdgpu_cleaner_shader: a job cleans registers and LDS between processes.
    pub const CLEANER_SHADER: u16 = 5;
    /// The bits of the event.
    pub const MASK: u16 = 0xff;
}

/// Bits of [`Header::flags`] above [`driver_event_kind::MASK`] in a [`DriverEvent`].
pub mod driver_event_flags {
    /// The current process is traced.
    pub const TRACED: u16 = 0x100;
}

/// The fields that a [`DriverEvent`] has: bits of [`DriverEvent::has`].
pub mod driver_event_has {
    /// `ring`.
    pub const RING: u32 = 1;
    /// `context`.
    pub const CONTEXT: u32 = 2;
    /// `seqno`.
    pub const SEQNO: u32 = 4;
    /// `job_id`.
    pub const JOB_ID: u32 = 8;
    /// `ibs`.
    pub const IBS: u32 = 0x10;
    /// `vmid`.
    pub const VMID: u32 = 0x20;
    /// `bytes`.
    pub const BYTES: u32 = 0x40;
    /// `old_placement`.
    pub const OLD_PLACEMENT: u32 = 0x80;
    /// `new_placement`.
    pub const NEW_PLACEMENT: u32 = 0x100;
}

/// One trace event of the driver. `header` names the thread in whose context the event came.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriverEvent {
    /// Header; [`driver_event_kind`] and [`driver_event_flags`].
    pub header: Header,
    /// Context of the job's finished fence; its lower half if the event keeps no more (kernels before 6.17).
    pub context: u64,
    /// Sequence number of that fence; its lower half if the event keeps no more. For amdgpu_cleaner_shader, the number of the
    /// cleaning job's own fence on the ring.
    pub seqno: u64,
    /// Number of the job on its ring.
    pub job_id: u64,
    /// Size of the buffer.
    pub bytes: u64,
    /// [`driver_event_has`].
    pub has: u32,
    /// Indirect buffers of the job.
    pub ibs: u32,
    /// Hardware id of the address space.
    pub vmid: u32,
    /// Memory that the buffer moves from: see [`crate::placement`].
    pub old_placement: u32,
    /// Memory that the buffer moves to.
    pub new_placement: u32,
    /// Unused.
    pub pad: u32,
    /// Name of the ring, up to its first 0.
    pub ring: [u8; NAME_LEN],
}

layout! {
    /// Byte offsets of the fields in the record of one of the events, by its format file; [`ABSENT`] if the event does not have
    /// the field.
    pub struct DriverEventLayout {
        /// `__data_loc` of the ring's name, 4 bytes.
        ring = ABSENT,
        /// `context`, of [`Self::fence_bytes`].
        context = ABSENT,
        /// `seqno`, of [`Self::fence_bytes`].
        seqno = ABSENT,
        /// Bytes that `context` and `seqno` take: 4 or 8.
        fence_bytes = 8,
        /// `sched_job_id`, 8 bytes.
        job_id = ABSENT,
        /// `num_ibs`, 4 bytes.
        ibs = ABSENT,
        /// `vmid`, 4 bytes.
        vmid = ABSENT,
        /// `bo_size`, 8 bytes.
        bytes = ABSENT,
        /// `old_placement`, 4 bytes.
        old_placement = ABSENT,
        /// `new_placement`, 4 bytes.
        new_placement = ABSENT,
    }
}
