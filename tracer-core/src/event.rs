//! Observations of capture sources, as the model takes them.
//!
//! An event says what was seen, by which probe, and nothing that would have to be concluded. Times are CLOCK_MONOTONIC
//! ns; process and thread ids are those of the initial pid namespace.

mod api;
mod code_object;
mod progress;
mod signal;

use tracer_common::aql::Packet;
use tracer_common::record::Stamps;

pub use api::{ApiCall, ApiStats, InCall};
pub use code_object::{CodeObject, CodeObjectChange};
pub use progress::{Occasion, Progress};
pub use signal::Signal;

/// Where and when something was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// CLOCK_MONOTONIC ns.
    pub time_ns: u64,
    /// Process id (thread group).
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// One observation.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A store to an AQL doorbell, after the [`Event::Packets`] of the same walk.
    Doorbell(Doorbell),
    /// Packets of a ring, read at a doorbell or by the collector.
    Packets(Packets<'a>),
    /// How far a queue's producers and its GPU were, read at no doorbell.
    Progress(Progress),
    /// What a completion signal held, read at no doorbell.
    Signal(Signal),
    /// A store to the doorbell of an SDMA queue.
    SdmaDoorbell(SdmaDoorbell<'a>),
    /// A producer is about to advance a write index.
    Reserve(Reserve),
    /// An ioctl on a KFD or DRM device, whole.
    Ioctl(Ioctl<'a>),
    /// A step in the life of a job of the DRM scheduler.
    RingJob(RingJob<'a>),
    /// A call of a function of the kernel driver.
    DriverCall(DriverCall<'a>),
    /// A trace event of the kernel driver itself.
    DriverEvent(DriverEvent<'a>),
    /// A runtime's list of code objects changed.
    CodeObject(CodeObject<'a>),
    /// A process was there before tracing began.
    There(There<'a>),
    /// A call of a function of HIP or HSA, whole.
    ApiCall(ApiCall),
    /// A program made a queue for itself.
    HsaQueue(HsaQueue),
    /// What was counted by now of the calls of one function, instead of [`Event::ApiCall`].
    ApiStats(&'a ApiStats),
    /// Whether a process's runtime hands doorbells to the driver's library (hsaKmtQueueRingDoorbell) instead of storing to them.
    Thunk(Origin, bool),
    /// A traced process made another one.
    Fork(Origin, u32),
    /// A process runs a new program; its name (at most 15 bytes).
    Exec(Origin, &'a [u8]),
    /// A process ended. Its queues end with it.
    Exit(Origin),
    /// A source dropped events since the last such event.
    Lost(Lost),
}

/// A process that was there before it became a traced one: before tracing began, or before it first used the KFD.
#[derive(Clone, Copy, Debug)]
pub struct There<'a> {
    /// Which, and the moment from which on its doorbells count; the thread is its first.
    pub origin: Origin,
    /// Name of its program, at most 15 bytes.
    pub comm: &'a [u8],
    /// The queues that the KFD says it had then.
    pub queues: &'a [KfdQueue],
    /// Whether it had not used the KFD before, or had no HSA runtime: then no call that makes a queue can have been missed.
    pub idle: bool,
}

/// A call of `hsa_queue_create` that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsaQueue {
    /// Who and when it was entered.
    pub origin: Origin,
    /// Return from it.
    pub exit_ns: u64,
    /// The handle that it gave, as a rule the address of an `amd_queue_t`; 0 if it is not known.
    pub handle: u64,
    /// What lies there, if that is a proxy in memory: a tool's.
    pub proxy: Option<Proxied>,
}

/// A proxy that was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Address of its ring.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
}

/// A queue, as the KFD's files show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KfdQueue {
    /// KFD queue id.
    pub queue_id: u32,
    /// KFD gpu id.
    pub gpu_id: Option<u32>,
    /// Whether it takes packets (compute) or commands of a copy engine (SDMA); `None` if it is of another type.
    pub compute: Option<bool>,
    /// Bytes of its ring.
    pub ring_bytes: Option<u64>,
}

/// A store to an AQL doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Who and when; the time is that of the store's function entry, just before the store.
    pub origin: Origin,
    /// Address of the `amd_queue_t`, in the process; 0 if it could not be read.
    pub handle: u64,
    /// Value stored: index of the last packet published.
    pub value: u64,
    /// First index that the walk covered. Lower ones that no earlier walk captured are no longer in the ring.
    pub first: u64,
    /// One past the last index that the walk covered (and that this doorbell, or an earlier one, published).
    pub end: u64,
    /// Read index at that moment.
    pub read_index: u64,
    /// Write index at that moment.
    pub write_index: u64,
    /// Address of the ring.
    pub ring_base: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// The process's memory could not be read: only `value` (and perhaps `handle`) are known.
    pub unreadable: bool,
    /// The value names an index that nobody has reserved: `end` is the write index, not `value + 1`.
    pub beyond: bool,
    /// No CREATE_QUEUE was seen for this address: what came before this doorbell is unknown.
    pub adopted: bool,
    /// It is no queue of a GPU's, but a tool's proxy in front of one.
    pub proxy: bool,
    /// One past the highest index that doorbells before this one published, those included whose events were lost; `None`
    /// if nobody knows.
    pub rung_end: Option<u64>,
}

/// Packets of a ring, as they lay there.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    /// Who published them (the thread whose doorbell led to the walk) and when.
    pub origin: Origin,
    /// Address of the `amd_queue_t`.
    pub handle: u64,
    /// Index of `packets[0]`.
    pub first: u64,
    /// Packets in the ring.
    pub ring_packets: u32,
    /// Read index, read before the packets.
    pub read_index: u64,
    /// Write index, read after the packets, but at most the read index + `ring_packets`, since a producer that reserved
    /// beyond waits: index `i` still has its slot iff `write_index <= i + ring_packets`.
    pub write_index: u64,
    /// Value of the doorbell whose walk it is.
    pub value: u64,
    /// The API call in which that doorbell was rung; `None` if in none, or calls are not recorded.
    pub call: Option<InCall>,
    /// The slots.
    pub packets: &'a [Packet],
    /// Bit `i`: the queue was profiled and the completion signal of `packets[i]` had the value 1, as `stamps[i]` were read.
    pub ready: u64,
    /// What the completion signals held before the doorbell's store, where they are ready; empty if nobody looked.
    pub stamps: &'a [Stamps],
    /// What was so before the doorbell that led to the walk; `None` if nobody knows.
    pub before: Option<Before>,
    /// [`Doorbell::proxy`].
    pub proxy: bool,
}

impl Packets<'_> {
    /// What the completion signal of `packets[at]` held before that packet could begin, if it was the only one to complete it.
    #[must_use]
    pub fn stamps_before(&self, at: usize) -> Option<Stamps> {
        let is_ready = at < 64 && self.ready >> at & 1 == 1;
        self.stamps.get(at).copied().filter(|_| is_ready)
    }
}

/// Where a queue was at the entry of a doorbell, before its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// [`Doorbell::rung_end`].
    pub rung_end: u64,
    /// The index that is stored.
    pub value: u64,
    /// Read index.
    pub read_index: u64,
}

/// A store to the doorbell of an SDMA queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdmaDoorbell<'a> {
    /// Who and when.
    pub origin: Origin,
    /// Address of the queue's write pointer (CREATE_QUEUE's `write_pointer_address`); 0 if it could not be read.
    pub write_pointer: u64,
    /// Where the submission begins in the command stream, in bytes.
    pub begin: u64,
    /// Where it ends: the value stored.
    pub end: u64,
    /// Its commands, all of them; `None` if they could not be read.
    pub commands: Option<&'a [u8]>,
    /// The API call in which it was rung; `None` if in none, or calls are not recorded.
    pub call: Option<InCall>,
}

/// How a producer moves a write index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveOp {
    /// Adds `n` packets.
    Add {
        /// Packets reserved.
        n: u64,
    },
    /// Stores `to`.
    Store {
        /// The new write index.
        to: u64,
    },
    /// Stores `to` if it is `from`.
    Cas {
        /// The write index expected.
        from: u64,
        /// The new write index.
        to: u64,
    },
}

/// Entry of a function that advances a write index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Who and when.
    pub origin: Origin,
    /// Address of the `hsa_queue_t`, which is the `amd_queue_t`'s.
    pub handle: u64,
    /// What it does.
    pub op: ReserveOp,
    /// Write index at entry; another producer may have moved it before the call did. `None` if unreadable.
    pub write_index: Option<u64>,
}

/// An ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl<'a> {
    /// Who, and the time of entry.
    pub origin: Origin,
    /// Time of exit; of the thread's end if it never returned.
    pub exit_ns: u64,
    /// File descriptor.
    pub fd: i32,
    /// The command.
    pub cmd: u32,
    /// User address of the argument.
    pub arg: u64,
    /// Result (negative: errno); `None` if the thread ended inside the call.
    pub ret: Option<i64>,
    /// The argument at entry; `None` if unreadable. May be only its start: see `_IOC_SIZE` of the command.
    pub arg_in: Option<&'a [u8]>,
    /// The argument at exit; `None` if unreadable.
    pub arg_out: Option<&'a [u8]>,
}

/// Events dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When the loss was noticed.
    pub time_ns: u64,
    /// Name of the source (`LossSource::name` for those in eBPF).
    pub source: &'static str,
    /// Events dropped since the last such event of this source.
    pub count: u64,
}

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
