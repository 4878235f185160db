//! Steps of DRM scheduler jobs.

use super::Header;
use crate::offset::ABSENT;

/// The step: low byte of [`Header::flags`] in a [`RingJob`].
pub mod ring_step {
    /// The job was put into its entity's queue, in the submitter's context.
    pub const SUBMIT: u16 = 1;
    /// The job was handed to the hardware.
    pub const RUN: u16 = 2;
    /// The job's hardware fence signalled.
    pub const DONE: u16 = 3;
    /// The bits of the step.
    pub const MASK: u16 = 0xff;
}

/// The fields that a [`RingJob`] has: bits of [`Header::flags`] above [`ring_step::MASK`].
pub mod ring_flags {
    /// `context` and `seqno`.
    pub const SEQNO: u16 = 0x100;
    /// `fence`.
    pub const FENCE: u16 = 0x200;
    /// `client_id`.
    pub const CLIENT: u16 = 0x400;
    /// `job_id`.
    pub const JOB_ID: u16 = 0x800;
    /// `queued`.
    pub const QUEUED: u16 = 0x1000;
    /// `ring`.
    pub const RING: u16 = 0x2000;
    /// `device`.
    pub const DEVICE: u16 = 0x4000;
    /// The current process is traced.
    pub const TRACED: u16 = 0x8000;
}

/// The number of bytes kept of a ring's and a device's name, including the closing 0. `amdgpu_ring.name` takes 16.
pub const NAME_LEN: usize = 32;

/// A step in the life of a DRM scheduler job. `header` names the thread in whose context the step came.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RingJob {
    /// Header; [`ring_step`] and [`ring_flags`].
    pub header: Header,
    /// Context of the finished fence.
    pub context: u64,
    /// Sequence number of the finished fence.
    pub seqno: u64,
    /// Address of the finished fence, in the kernel.
    pub fence: u64,
    /// DRM client, or reason.
    pub client_id: u64,
    /// Number of the job on its ring.
    pub job_id: u64,
    /// Jobs in the entity's queue.
    pub queued: u32,
    /// Unused.
    pub pad: u32,
    /// Name of the ring, up to its first 0.
    pub ring: [u8; NAME_LEN],
    /// Name of the device, up to its first 0.
    pub device: [u8; NAME_LEN],
}

layout! {
    /// Byte offsets of the fields in the record of a scheduler event, by its format file; [`ABSENT`] if the event does not have
    /// the field.
    pub struct EventLayout {
        /// `__data_loc` of the ring's name, 4 bytes.
        ring = ABSENT,
        /// `__data_loc` of the device's name, 4 bytes.
        device = ABSENT,
        /// `fence_context`, 8 bytes.
        context = ABSENT,
        /// `fence_seqno`, 8 bytes.
        seqno = ABSENT,
        /// `fence`, a kernel address of 8 bytes.
        fence = ABSENT,
        /// `client_id`, 8 bytes.
        client_id = ABSENT,
        /// `id`, 8 bytes.
        job_id = ABSENT,
        /// `job_count`, 4 bytes.
        queued = ABSENT,
    }
}

layout! {
    /// Byte offsets of the fields in the kernel's structures, by its BTF; [`ABSENT`] if the kernel does not have the field.
    pub struct StructLayout {
        /// `drm_sched_job.s_fence`.
        job_fence = ABSENT,
        /// `drm_sched_job.sched`.
        job_sched = ABSENT,
        /// `drm_sched_job.id`, 8 bytes.
        job_id = ABSENT,
        /// `drm_sched_fence.finished.context`.
        context = ABSENT,
        /// `drm_sched_fence.finished.seqno`.
        seqno = ABSENT,
        /// `drm_sched_fence.drm_client_id`.
        client_id = ABSENT,
        /// `drm_gpu_scheduler.name`, a pointer.
        sched_name = ABSENT,
        /// `drm_gpu_scheduler.dev`, a pointer.
        sched_dev = ABSENT,
        /// `device.kobj.name`, a pointer.
        device_name = ABSENT,
        /// `drm_sched_entity.job_queue.job_count`, 4 bytes.
        queued = ABSENT,
    }
}
