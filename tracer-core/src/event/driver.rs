//! Activity of the kernel driver: jobs on its rings, calls of its functions, and its trace events.

use super::Origin;

/// Key that the events of one job have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKey {
    /// Address of its finished fence (kernels before 6.17, without BTF). The address is reused after the job's end.
    Fence(u64),
    /// Context and sequence number of its finished fence. They are unique while the machine is up.
    Seqno {
        /// Fence context.
        context: u64,
        /// Sequence number in that context.
        seqno: u64,
    },
}

/// A step in a job's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingStep {
    /// The submitter's context put the job into its entity's queue.
    Submit,
    /// A kernel thread handed the job to the hardware.
    Run,
    /// Its hardware fence signalled.
    Done,
}

/// A step in the life of a job of the DRM scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingJob<'a> {
    /// Time and context. Only the context of a submit is the submitter's.
    pub origin: Origin,
    /// The step.
    pub step: RingStep,
    /// The job.
    pub key: JobKey,
    /// Name of the ring; `None` if the event does not say.
    pub ring: Option<&'a [u8]>,
    /// Name of the device; `None` if the event does not say.
    pub device: Option<&'a [u8]>,
    /// Client id, or a reason code; `None` if the event does not say.
    pub client_id: Option<u64>,
    /// Number of the job on its ring; `None` if the event does not say.
    pub job_id: Option<u64>,
    /// Jobs in the entity's queue; `None` if the event does not say.
    pub queued: Option<u32>,
    /// Whether the process in whose context the event occurred is traced.
    pub traced: bool,
}

/// A complete call of a function of the kernel driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall<'a> {
    /// Thread that made the call, and time of entry.
    pub origin: Origin,
    /// Time of return.
    pub exit_ns: u64,
    /// Name of the function, as in the kernel's symbol table, without a compiler's suffix.
    pub function: &'a str,
    /// Contents of the return register.
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
    /// A job flushes the address translations of an address space.
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

    /// Returns the event's name in the kernel.
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

/// A trace event of the kernel driver itself. Fields that this kernel's event does not have are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverEvent<'a> {
    /// Time and context.
    pub origin: Origin,
    /// The kind of event.
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
    /// Memory that the buffer was in. See `tracer_common::placement`.
    pub old_placement: Option<u32>,
    /// Memory that the buffer moves to.
    pub new_placement: Option<u32>,
    /// Whether the process in whose context the event occurred is traced.
    pub traced: bool,
}
