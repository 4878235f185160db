//! What the kernel driver does: jobs on its rings, calls of its functions, its trace events.

use super::Origin;

/// What the events of one job have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKey {
    /// Address of its finished fence (kernels before 6.17, without BTF); used again after the job's end.
    Fence(u64),
    /// Context and sequence number of its finished fence: unique while the machine is up.
    Seqno {
        /// Fence context.
        context: u64,
        /// Sequence number in it.
        seqno: u64,
    },
}

/// A step in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingStep {
    /// Put into its entity's queue, in the submitter's context.
    Submit,
    /// Handed to the hardware, by a thread of the kernel.
    Run,
    /// Its hardware fence signalled.
    Done,
}

/// A step in the life of a job of the DRM scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingJob<'a> {
    /// When, and in whose context. Only a submit's context is the submitter's.
    pub origin: Origin,
    /// Which step.
    pub step: RingStep,
    /// Which job.
    pub key: JobKey,
    /// Name of the ring; `None` if the event does not tell.
    pub ring: Option<&'a [u8]>,
    /// Name of the device; `None` if the event does not tell.
    pub device: Option<&'a [u8]>,
    /// Client id, or a reason code; `None` if the event does not tell.
    pub client_id: Option<u64>,
    /// Number of the job on its ring; `None` if the event does not tell.
    pub job_id: Option<u64>,
    /// Jobs in the entity's queue; `None` if the event does not tell.
    pub queued: Option<u32>,
    /// Whether the process in whose context it came is traced.
    pub traced: bool,
}

/// A call of a function of the kernel driver, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall<'a> {
    /// The thread that ran it, and the time of entry.
    pub origin: Origin,
    /// Time of return.
    pub exit_ns: u64,
    /// Name of the function, as the kernel's symbol table has it, without a compiler's suffix.
    pub function: &'a str,
    /// What the return register held.
    pub ret: i64,
    /// Whether that thread's process is traced.
    pub traced: bool,
}

/// Trace events of amdgpu (drivers/gpu/drm/amd/amdgpu/amdgpu_trace.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverEventKind {
    /// A client's command submission (AMDGPU_CS).
    CsIoctl,
    /// The driver takes a job from its scheduler.
    SchedRunJob,
    /// A buffer moves to other memory.
    BoMove,
    /// A job flushes the translations of an address space.
    VmFlush,
    /// A job cleans registers and LDS between processes.
    CleanerShader,
}

impl DriverEventKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::CsIoctl,
        Self::SchedRunJob,
        Self::BoMove,
        Self::VmFlush,
        Self::CleanerShader,
    ];

    /// The event's name in the kernel.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CsIoctl => "amdgpu_cs_ioctl",
            Self::SchedRunJob => "amdgpu_sched_run_job",
            Self::BoMove => "amdgpu_bo_move",
            Self::VmFlush => "amdgpu_vm_flush",
            Self::CleanerShader => "amdgpu_cleaner_shader",
        }
    }
}

/// A trace event of the kernel driver itself. What this kernel's event does not tell is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverEvent<'a> {
    /// When, and in whose context.
    pub origin: Origin,
    /// Which event.
    pub kind: DriverEventKind,
    /// Name of the ring.
    pub ring: Option<&'a [u8]>,
    /// Context of the job's finished fence, or its lower half.
    pub context: Option<u64>,
    /// Sequence number of the fence, or its lower half.
    pub seqno: Option<u64>,
    /// Number of the job on its ring.
    pub job_id: Option<u64>,
    /// Indirect buffers of the job.
    pub ibs: Option<u32>,
    /// Hardware id of the address space.
    pub vmid: Option<u32>,
    /// Bytes of the buffer.
    pub bytes: Option<u64>,
    /// Memory that the buffer was in: see `tracer_common::placement`.
    pub old_placement: Option<u32>,
    /// Memory that it moves to.
    pub new_placement: Option<u32>,
    /// Whether the process in whose context it came is traced.
    pub traced: bool,
}
