//! Observations of capture sources, as the model takes them.
//!
//! An event says what was seen, by which probe, and nothing that would have to be concluded. Times are CLOCK_MONOTONIC
//! ns; process and thread ids are those of the initial pid namespace.

mod api;
mod code_object;
mod doorbell;
mod driver;
mod hsa_queue;
mod progress;
mod signal;

pub use api::{ApiCall, ApiStats, InCall};
pub use code_object::{CodeObject, CodeObjectChange};
pub use doorbell::{Before, Doorbell, Packets};
pub use driver::{DriverCall, DriverEvent, DriverEventKind, JobKey, RingJob, RingStep};
pub use hsa_queue::{HsaQueue, Proxied};
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
    /// Whether a process's runtime hands doorbells to the driver's library (hsaKmtQueueRingDoorbell) instead of storing to them;
    /// `None`: that is not known, or not known any more.
    Thunk(Origin, Option<bool>),
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
