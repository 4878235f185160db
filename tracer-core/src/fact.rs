//! Conclusions of the model, with their evidence. One struct is one row of a table of the trace.

mod api_call;
mod api_stats;
mod code_object;
mod copy;
mod driver_call;
mod driver_event;
mod gpu_time;
mod progress;
mod proxy;
mod queue;
mod ring_job;
mod run;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use api_call::ApiCall;
pub use api_stats::{ApiStats, Durations};
pub use code_object::{CodeObject, Kernel};
pub use copy::{Copy, CopyOp, Direction};
pub use driver_call::DriverCall;
pub use driver_event::DriverEvent;
pub use gpu_time::GpuTime;
pub use progress::Progress;
pub use proxy::{Proxy, Request};
pub use queue::{Queue, QueueOrigin};
pub use ring_job::RingJob;
pub use run::{DispatchRun, DoorbellRun};

/// A conclusion.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A kernel dispatch was published.
    Dispatch(Dispatch),
    /// Kernel dispatches without facts of their own in a trace.
    DispatchRun(DispatchRun),
    /// A program submitted a kernel dispatch to a tool's proxy.
    Request(Request),
    /// A packet of another kind was published, or an index whose packet is unknown.
    Packet(OtherPacket),
    /// Times of a dispatch, by the GPU's own clock.
    GpuTime(GpuTime),
    /// A doorbell was rung.
    Doorbell(Doorbell),
    /// Doorbells without facts of their own in a trace.
    DoorbellRun(DoorbellRun),
    /// An SDMA submission.
    Copy(Copy),
    /// An ioctl.
    Ioctl(Ioctl),
    /// A job on a ring of the kernel driver, reported at the end of the job or of the trace.
    RingJob(RingJob),
    /// A call of a function of the kernel driver.
    DriverCall(DriverCall),
    /// A trace event of the kernel driver itself.
    DriverEvent(DriverEvent),
    /// A code object, reported at its end (unloaded, process exit, or end of the trace).
    CodeObject(CodeObject),
    /// A kernel of a code object, reported when the code object is loaded.
    Kernel(Kernel),
    /// Progress of a queue.
    Progress(Progress),
    /// A call of a HIP or HSA function.
    ApiCall(ApiCall),
    /// Calls of a HIP or HSA function that were only counted, reported at the end of the trace.
    ApiStats(ApiStats),
    /// A queue with its final numbers, reported at its end (destroyed, process exit, or end of the trace).
    Queue(Queue),
    /// A proxy, reported in the same way.
    Proxy(Proxy),
    /// A traced process, reported at its exit or at the end of the trace.
    Process(Process),
    /// Events lost.
    Loss(Loss),
}

/// The path that a submission took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// A store to a doorbell from user space.
    Doorbell,
    /// A job on a ring of the kernel driver.
    Ring,
    /// A call of hsaKmtQueueRingDoorbell.
    Thunk,
    /// The GPU took it although no observed doorbell had published it. Either a thread stored to the doorbell past every probe, or
    /// the GPU read the write index by itself when it mapped the queue.
    Unseen,
}

impl Path {
    /// Every path.
    pub const ALL: [Self; 4] = [Self::Doorbell, Self::Ring, Self::Thunk, Self::Unseen];
    /// Returns the name used in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Doorbell => "doorbell",
            Self::Ring => "ring",
            Self::Thunk => "thunk",
            Self::Unseen => "unseen",
        }
    }
}

/// Evidence for the kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The header was valid when it was read.
    Header,
    /// The GPU had consumed the packet and set the header back to INVALID. The slot was not reused yet, and the body can only be a
    /// kernel dispatch.
    Body,
}

impl Evidence {
    /// Returns the name used in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Body => "body",
        }
    }
}

/// A kernel dispatch packet that was published.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// Queue number in the trace ([`Queue::queue`]).
    pub queue: u32,
    /// Packet index in its queue (not modulo the ring's size).
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Thread whose doorbell published it; 0 if the path is [`Path::Unseen`].
    pub tid: u32,
    /// Time of that doorbell. If the path is [`Path::Unseen`], time of the doorbell at which the packet was read.
    pub time_ns: u64,
    /// The path that it took.
    pub path: Path,
    /// Evidence for `kind = dispatch`.
    pub evidence: Evidence,
    /// Time at which the thread that rang the doorbell entered the write index advance that covers this index; `None` if reserves
    /// were not traced, or none of that thread's reserves covers the index.
    pub reserve_ns: Option<u64>,
    /// If `reserve_ns` is unknown: the latest time at which the index was observed to be unreserved. Another thread or the runtime
    /// reserved it after that and before the doorbell. `None` if `reserve_ns` is known, or there was no such observation.
    pub unreserved_ns: Option<u64>,
    /// Header, 16 bits, as read (its type is INVALID with [`Evidence::Body`]).
    pub header: u16,
    /// Number of dimensions, 1 to 3.
    pub dimensions: u16,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel, demangled; `None` if no known code object was loaded at that address at that time.
    pub kernel: Option<Arc<str>>,
    /// Address of the arguments.
    pub kernarg: u64,
    /// Grid size in work items.
    pub grid: [u32; 3],
    /// Workgroup size in work items.
    pub workgroup: [u16; 3],
    /// Private memory per work item, in bytes.
    pub private_segment: u32,
    /// Group memory per workgroup, in bytes.
    pub group_segment: u32,
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
    /// `reserved2`: HIP's correlation id under a profiler, else 0.
    pub correlation: u64,
    /// Number of the innermost API call in which the thread rang for it ([`ApiCall::call`]); `None` if the thread was in no call,
    /// if calls were not recorded, or if the doorbell may have published another thread's packet.
    pub api_call: Option<u64>,
    /// Stream of the innermost call around that doorbell that names a stream; `None` under the same conditions.
    pub stream: Option<u64>,
}

/// Kind of a packet that is not a kernel dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacketKind {
    /// Barrier-AND.
    BarrierAnd,
    /// Barrier-OR.
    BarrierOr,
    /// Agent dispatch.
    AgentDispatch,
    /// AMD vendor packet: PM4 indirect buffer.
    VendorPm4Ib,
    /// AMD vendor packet: barrier on a value.
    VendorBarrierValue,
    /// Vendor packet of another format.
    VendorOther,
    /// A type that the specification does not define.
    Undefined,
    /// Published, but the packet could not be read in time: see [`Unread`].
    Unread,
}

impl PacketKind {
    /// Returns the name used in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BarrierAnd => "barrier-and",
            Self::BarrierOr => "barrier-or",
            Self::AgentDispatch => "agent-dispatch",
            Self::VendorPm4Ib => "vendor-pm4-ib",
            Self::VendorBarrierValue => "vendor-barrier-value",
            Self::VendorOther => "vendor-other",
            Self::Undefined => "undefined",
            Self::Unread => "unread",
        }
    }
}

/// Why a published packet is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unread {
    /// Its slot was reused before a walk reached it (earlier events were lost, or a walk was cut short).
    Reused,
    /// The GPU consumed it before it was read, and its body alone does not show its kind.
    Consumed,
    /// Its header never became valid while the queue was watched.
    NeverValid,
    /// The process's memory could not be read.
    Unreadable,
}

impl Unread {
    /// Returns the name used in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Consumed => "consumed",
            Self::NeverValid => "never-valid",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Published packets other than kernel dispatches. A row is one packet, or a run of unread packets.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherPacket {
    /// Queue number in the trace.
    pub queue: u32,
    /// Index of the first packet.
    pub index: u64,
    /// Number of indexes in this row: 1, or more for a run of unread packets.
    pub count: u64,
    /// Process.
    pub pid: u32,
    /// Thread whose doorbell published it; 0 if unknown.
    pub tid: u32,
    /// Time of that doorbell, or time at which the model gave up the packet.
    pub time_ns: u64,
    /// The path that it took.
    pub path: Path,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Reason, for [`PacketKind::Unread`].
    pub unread: Option<Unread>,
    /// Header, as read; 0 if unread.
    pub header: u16,
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
}

/// A store to an AQL doorbell.
#[derive(Clone, Debug, PartialEq)]
pub struct Doorbell {
    /// Queue number in the trace; `None` if the queue's memory could not be read.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of the doorbell.
    pub time_ns: u64,
    /// Value stored.
    pub value: u64,
    /// Number of indexes that it published: `value + 1 - highest published before`; 0 for a repeated or lower value.
    pub published: u64,
    /// Read index at that time.
    pub read_index: u64,
    /// Write index at that time.
    pub write_index: u64,
    /// Time from the entry of the thread's last reserve on this queue to this doorbell, in ns.
    pub reserve_to_doorbell_ns: Option<u64>,
    /// Whether the value names an index that was not reserved.
    pub beyond: bool,
}

/// An ioctl on a KFD or DRM device.
#[derive(Clone, Debug, PartialEq)]
pub struct Ioctl {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of entry.
    pub enter_ns: u64,
    /// Time of exit of the call, or of the thread if the call never returned; the end of the recording if the call was open then.
    pub exit_ns: u64,
    /// `kfd` or `drm`.
    pub device: &'static str,
    /// File descriptor.
    pub fd: i32,
    /// The ioctl command.
    pub cmd: u32,
    /// Name of the command, or `nr-0xNN` for an unknown number.
    pub name: std::borrow::Cow<'static, str>,
    /// Result; `None` if the call did not return before the end of the recording.
    pub ret: Option<i64>,
    /// Fields of the argument as `name=value`; results of a successful call follow after `->`. `None` if the layout is unknown, or
    /// the argument could not be read. For the layouts, see `tracer_common::ioctl_args`.
    pub args: Option<String>,
    /// The argument at entry; `None` if it could not be read.
    pub arg_in: Option<Vec<u8>>,
    /// The argument at exit; `None` if it could not be read.
    pub arg_out: Option<Vec<u8>>,
}

/// A traced process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Parent process, if the fork was seen.
    pub parent: Option<u32>,
    /// Name of the last program, at most 15 bytes; empty if tracer saw no exec.
    pub comm: String,
    /// Time of the first event.
    pub first_ns: u64,
    /// Time of exit; `None` if the process was alive at the end of the trace.
    pub exit_ns: Option<u64>,
    /// Whether its runtime hands doorbells to the driver's library ([`Path::Thunk`]); `None` if that is not known, or if its
    /// runtime cannot do so.
    pub thunk: Option<bool>,
}

/// Events that a source lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Time at which the loss was noticed.
    pub time_ns: u64,
    /// Name of the source.
    pub source: String,
    /// Number of events.
    pub count: u64,
}
