//! What the model concludes, with the evidence for it. One struct is one row of a table of the trace.

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
    /// Kernel dispatches that have no facts of their own in a trace.
    DispatchRun(DispatchRun),
    /// A program submitted a kernel dispatch to a tool's proxy.
    Request(Request),
    /// Another packet was published, or an index whose packet is not known.
    Packet(OtherPacket),
    /// When a dispatch ran, by the GPU's own clock.
    GpuTime(GpuTime),
    /// A doorbell was rung.
    Doorbell(Doorbell),
    /// Doorbells that have no facts of their own in a trace.
    DoorbellRun(DoorbellRun),
    /// An SDMA submission.
    Copy(Copy),
    /// An ioctl.
    Ioctl(Ioctl),
    /// A job on a ring of the kernel driver, at its end or the trace's.
    RingJob(RingJob),
    /// A call of a function of the kernel driver.
    DriverCall(DriverCall),
    /// A trace event of the kernel driver itself.
    DriverEvent(DriverEvent),
    /// A code object, at its end (unloaded, its process ended, or the trace ended).
    CodeObject(CodeObject),
    /// A kernel of a code object, as that is loaded.
    Kernel(Kernel),
    /// How far a queue was.
    Progress(Progress),
    /// A call of a function of HIP or HSA.
    ApiCall(ApiCall),
    /// Calls of a function of HIP or HSA that were only counted, at the trace's end.
    ApiStats(ApiStats),
    /// A queue, at its end (destroyed, its process ended, or the trace ended): final numbers.
    Queue(Queue),
    /// A proxy, likewise.
    Proxy(Proxy),
    /// A traced process, at its end or the trace's.
    Process(Process),
    /// Events lost.
    Loss(Loss),
}

/// The way that a submission took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// A store to a doorbell from user space.
    Doorbell,
    /// A job on a ring of the kernel driver.
    Ring,
    /// hsaKmtQueueRingDoorbell.
    Thunk,
    /// The GPU took it although no doorbell that was seen had published it: somebody stored to the doorbell past every
    /// probe, or the GPU looked at the write index by itself when it mapped the queue.
    Unseen,
}

impl Path {
    /// Every path.
    pub const ALL: [Self; 4] = [Self::Doorbell, Self::Ring, Self::Thunk, Self::Unseen];
    /// The word in data.
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

/// What the packet's kind rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Its header was valid when it was read.
    Header,
    /// The GPU had consumed it and set the header back to INVALID; its slot was not reused yet, and the body can only
    /// be a kernel dispatch.
    Body,
}

impl Evidence {
    /// The word in data.
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
    /// Queue, by its number in the trace ([`Queue::queue`]).
    pub queue: u32,
    /// Packet index in its queue (not modulo the ring's size).
    pub index: u64,
    /// Process.
    pub pid: u32,
    /// Thread whose doorbell published it; 0 if it is [`Path::Unseen`].
    pub tid: u32,
    /// Time of that doorbell; of the one at which it was read, if it is [`Path::Unseen`].
    pub time_ns: u64,
    /// The way it took.
    pub path: Path,
    /// What `kind = dispatch` rests on.
    pub evidence: Evidence,
    /// Time at which the thread that rang the doorbell had entered the write index advance that covers this index;
    /// `None` where reserves were not traced or none of that thread's covers it.
    pub reserve_ns: Option<u64>,
    /// Where `reserve_ns` is not known: the latest time at which the index was seen not to be reserved yet. Another thread
    /// or the runtime reserved it, after that and before the doorbell. `None` if `reserve_ns` is known, or nothing was seen.
    pub unreserved_ns: Option<u64>,
    /// Header, 16 bits, as read (its type is INVALID under [`Evidence::Body`]).
    pub header: u16,
    /// Dimensions, 1 to 3.
    pub dimensions: u16,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Name of the kernel, demangled; `None` if no code object that is known was loaded there at that time.
    pub kernel: Option<Arc<str>>,
    /// Address of the arguments.
    pub kernarg: u64,
    /// Grid in work items.
    pub grid: [u32; 3],
    /// Workgroup in work items.
    pub workgroup: [u16; 3],
    /// Bytes a work item.
    pub private_segment: u32,
    /// Bytes a workgroup.
    pub group_segment: u32,
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
    /// `reserved2`: HIP's correlation id under a profiler, else 0.
    pub correlation: u64,
    /// Number of the innermost API call in which its thread rang for it ([`ApiCall::call`]); `None` where in none, where
    /// calls were not recorded, or where it may be another thread's packet that the doorbell published.
    pub api_call: Option<u64>,
    /// Stream of the innermost call around that doorbell that names one; `None` likewise.
    pub stream: Option<u64>,
}

/// Kind of a packet that is no kernel dispatch.
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
    /// Published, but its packet could not be read in time: see [`Unread`].
    Unread,
}

impl PacketKind {
    /// The word in data.
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

/// Why a published packet is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unread {
    /// Its slot was reused before a walk came by (events before it were lost, or a walk was cut short).
    Reused,
    /// Consumed before it was read, and its body alone does not say what it was.
    Consumed,
    /// Its header never became valid while the queue was watched.
    NeverValid,
    /// The process's memory could not be read.
    Unreadable,
}

impl Unread {
    /// The word in data.
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

/// Published packets other than kernel dispatches, one or (unread ones) a run.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherPacket {
    /// Queue, by its number in the trace.
    pub queue: u32,
    /// Index of the first.
    pub index: u64,
    /// How many indexes this row stands for: 1, or more for a run of unread ones.
    pub count: u64,
    /// Process.
    pub pid: u32,
    /// Thread whose doorbell published it; 0 if unknown.
    pub tid: u32,
    /// Time of that doorbell, or when it was given up.
    pub time_ns: u64,
    /// The way it took.
    pub path: Path,
    /// What it is.
    pub kind: PacketKind,
    /// For [`PacketKind::Unread`]: why.
    pub unread: Option<Unread>,
    /// Header, as read; 0 if unread.
    pub header: u16,
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
}

/// A store to an AQL doorbell.
#[derive(Clone, Debug, PartialEq)]
pub struct Doorbell {
    /// Queue, by its number in the trace; `None` if its memory could not be read.
    pub queue: Option<u32>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time.
    pub time_ns: u64,
    /// Value stored.
    pub value: u64,
    /// Indexes that became published by it: `value + 1 - highest published before`, 0 for a repeated or lower value.
    pub published: u64,
    /// Read index at that moment.
    pub read_index: u64,
    /// Write index at that moment.
    pub write_index: u64,
    /// Time from the entry of the thread's last reserve on this queue to this doorbell, ns.
    pub reserve_to_doorbell_ns: Option<u64>,
    /// The value names an index that was not reserved.
    pub beyond: bool,
}

/// An ioctl on a KFD or DRM device.
#[derive(Clone, Debug, PartialEq)]
pub struct Ioctl {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Entry.
    pub enter_ns: u64,
    /// Exit (of the call, or of the thread that never returned from it); the recording's end, if the call was open then.
    pub exit_ns: u64,
    /// `kfd` or `drm`.
    pub device: &'static str,
    /// File descriptor.
    pub fd: i32,
    /// The command.
    pub cmd: u32,
    /// Name, or `nr-0xNN` for an unknown number.
    pub name: std::borrow::Cow<'static, str>,
    /// Result; `None` if it never returned, or not before the recording's end.
    pub ret: Option<i64>,
    /// The argument's fields, `name=value`, results of a call that succeeded behind `->`; `None` where the layout is not
    /// known or the argument was unreadable. Layouts: `tracer_common::ioctl_args`.
    pub args: Option<String>,
    /// The argument at entry; `None` if unreadable.
    pub arg_in: Option<Vec<u8>>,
    /// The argument at exit; `None` if unreadable.
    pub arg_out: Option<Vec<u8>>,
}

/// A traced process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Parent, if its fork was seen.
    pub parent: Option<u32>,
    /// Name of the last program, at most 15 bytes; empty if tracer saw no exec.
    pub comm: String,
    /// First event seen.
    pub first_ns: u64,
    /// Its end; `None` if it lived at the trace's end.
    pub exit_ns: Option<u64>,
    /// Whether its runtime hands doorbells to the driver's library ([`Path::Thunk`]); `None` if that is not known, or its runtime
    /// can't.
    pub thunk: Option<bool>,
}

/// Events lost by a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// When it was noticed.
    pub time_ns: u64,
    /// Name of the source.
    pub source: String,
    /// Events.
    pub count: u64,
}
