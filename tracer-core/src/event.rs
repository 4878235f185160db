//! Observations of capture sources: the input of the model.
//!
//! An event says what was observed, and by which probe. It contains no conclusions. Times are CLOCK_MONOTONIC ns. Process and
//! thread ids are those of the initial pid namespace.

mod code_object;
mod doorbell;
mod hsa_queue;
mod progress;
mod ring_job;
mod signal;

use crate::placement::Placement;
use crate::tables;

pub use code_object::{CodeObject, CodeObjectChange};
pub use doorbell::{Before, Doorbell, InCall, Packets};
pub use hsa_queue::{HsaQueue, Proxied};
pub use progress::{Occasion, Progress};
pub use ring_job::{JobKey, RingJob, RingStep};
pub use signal::Signal;

/// Where and when something was observed.
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
    /// Packets that the GPU had passed when their slots were read, for which no doorbell was seen by then. `value`, `call` and
    /// `before` are meaningless.
    Taken(Packets<'a>),
    /// Progress of a queue's producers and its GPU, read without a doorbell.
    Progress(Progress),
    /// Contents of a completion signal, read without a doorbell.
    Signal(Signal),
    /// A store to the doorbell of an SDMA queue.
    SdmaDoorbell(SdmaDoorbell<'a>),
    /// A producer is about to advance a write index.
    Reserve(Reserve),
    /// A complete ioctl on a KFD or DRM device.
    Ioctl(Ioctl<'a>),
    /// A step in the life of a job of the DRM scheduler.
    RingJob(RingJob<'a>),
    /// A call of a function of the kernel driver.
    DriverCall(&'a tables::DriverCall),
    /// A trace event of the kernel driver itself.
    DriverEvent(&'a tables::DriverEvent),
    /// A runtime's list of code objects changed.
    CodeObject(CodeObject<'a>),
    /// A process existed before tracing began.
    There(There<'a>),
    /// A complete call of a HIP, HSA or OpenCL function; the model counts its submissions.
    ApiCall(&'a tables::ApiCall),
    /// A program created a queue for itself.
    HsaQueue(HsaQueue),
    /// Counts of the calls of one function so far, instead of [`Event::ApiCall`].
    ApiStats(&'a tables::ApiStats),
    /// Whether a process's runtime hands doorbells to the driver's library (hsaKmtQueueRingDoorbell) instead of storing to them;
    /// `None` if that is not known, or no longer known.
    Thunk(Origin, Option<bool>),
    /// Where a process runs that uses the KFD, by its cgroup.
    Placed(Origin, &'a Placement),
    /// A traced process created another process.
    Fork(Origin, u32),
    /// A process runs a new program. The bytes are its name (at most 15).
    Exec(Origin, &'a [u8]),
    /// A process exited. Its queues end with it.
    Exit(Origin),
    /// The stack of a thread that rang a doorbell. It arrives some time after the doorbell.
    Stack(&'a tables::Stack),
    /// A library lost its probes, because no process uses it any more.
    Library(&'a tables::Library),
    /// A row of a table that the source has concluded itself: the log of a runtime is about packets, and has no memory to read.
    Logged(&'a tables::Fact),
    /// A source dropped events since its last such event.
    Lost(Lost),
}

/// A process that existed before it became a traced process: before tracing began, or before it first used the KFD.
#[derive(Clone, Copy, Debug)]
pub struct There<'a> {
    /// The process, and the time from which its doorbells count. The thread is its first thread.
    pub origin: Origin,
    /// Name of its program, at most 15 bytes.
    pub comm: &'a [u8],
    /// Queues that it had at that time, according to the KFD.
    pub queues: &'a [KfdQueue],
    /// Whether it had not used the KFD before, or had no HSA runtime. In that case no call that creates a queue can have been
    /// missed.
    pub idle: bool,
}

/// A queue, as the KFD's files show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KfdQueue {
    /// KFD queue id.
    pub queue_id: u32,
    /// KFD gpu id.
    pub gpu_id: Option<u32>,
    /// Whether it takes packets (compute) or commands of a copy engine (SDMA); `None` if it has another type.
    pub compute: Option<bool>,
    /// Bytes of its ring.
    pub ring_bytes: Option<u64>,
}

/// A store to the doorbell of an SDMA queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdmaDoorbell<'a> {
    /// Thread and time.
    pub origin: Origin,
    /// Address of the queue's write pointer (CREATE_QUEUE's `write_pointer_address`); 0 if it could not be read.
    pub write_pointer: u64,
    /// Start of the submission in the command stream, in bytes.
    pub begin: u64,
    /// End of the submission: the value stored.
    pub end: u64,
    /// All of its commands; `None` if they could not be read.
    pub commands: Option<&'a [u8]>,
    /// The API call in which the doorbell was rung; `None` if outside any call, or if calls are not recorded.
    pub call: Option<InCall>,
}

/// How a producer advances a write index.
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
    /// Stores `to` if the write index is `from`.
    Cas {
        /// The expected write index.
        from: u64,
        /// The new write index.
        to: u64,
    },
}

/// Entry into a function that advances a write index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Thread and time.
    pub origin: Origin,
    /// Address of the `hsa_queue_t`, which is also the address of the `amd_queue_t`.
    pub handle: u64,
    /// The operation.
    pub op: ReserveOp,
    /// Write index at entry. Another producer may have advanced it before this call did. `None` if it could not be read.
    pub write_index: Option<u64>,
}

/// An ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl<'a> {
    /// Thread and time of entry.
    pub origin: Origin,
    /// Time of exit, or of the thread's exit if the call never returned.
    pub exit_ns: u64,
    /// File descriptor.
    pub fd: i32,
    /// The ioctl command.
    pub cmd: u32,
    /// Result (negative: errno); `None` if the thread exited inside the call.
    pub ret: Option<i64>,
    /// The argument at entry; `None` if it could not be read. It may be truncated: see `_IOC_SIZE` of the command.
    pub arg_in: Option<&'a [u8]>,
    /// The argument at exit; `None` if it could not be read.
    pub arg_out: Option<&'a [u8]>,
}

/// Dropped events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time at which the loss was noticed.
    pub time_ns: u64,
    /// Name of the source (`LossSource::name` for sources in eBPF).
    pub source: &'static str,
    /// Number of events dropped since the last such event of this source.
    pub count: u64,
}
