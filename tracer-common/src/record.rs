//! Records that eBPF programs put into the ring buffers, byte for byte.
//!
//! Every record starts with a [`Header`]; its `kind` names the struct. Times are CLOCK_MONOTONIC ns (`bpf_ktime_get_ns`). Process
//! and thread ids are those of the initial pid namespace.

mod api;
mod driver_event;
mod loss;
mod next_doorbell;
mod ring_job;
mod stack;

use crate::{aql::Packet, pause::FileKey};

/// The kinds of records that start with a [`Header`].
pub mod kind {
    /// [`super::Doorbell`].
    pub const DOORBELL: u16 = 1;
    /// [`super::Packets`].
    pub const PACKETS: u16 = 2;
    /// [`super::Ioctl`].
    pub const IOCTL: u16 = 3;
    /// [`super::Reserve`].
    pub const RESERVE: u16 = 4;
    /// [`super::Task`].
    pub const TASK: u16 = 5;
    /// [`super::Hold`].
    pub const HOLD: u16 = 6;
    /// [`super::SdmaDoorbell`].
    pub const SDMA_DOORBELL: u16 = 7;
    /// [`super::RingJob`].
    pub const RING_JOB: u16 = 8;
    /// [`super::DriverCall`].
    pub const DRIVER_CALL: u16 = 9;
    /// [`super::DriverEvent`].
    pub const DRIVER_EVENT: u16 = 10;
    /// [`super::Progress`].
    pub const PROGRESS: u16 = 11;
    /// [`super::ApiCall`].
    pub const API_CALL: u16 = 12;
    /// [`super::HsaQueue`].
    pub const HSA_QUEUE: u16 = 13;
    /// [`super::Signals`].
    pub const SIGNALS: u16 = 14;
    /// [`super::NextDoorbell`].
    pub const NEXT_DOORBELL: u16 = 15;
}

/// The start of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// One of [`kind`].
    pub kind: u16,
    /// Bits whose meaning depends on the kind.
    pub flags: u16,
    /// Probe site that created the record: index into the recorder's table of sites.
    pub site: u32,
    /// CLOCK_MONOTONIC ns.
    pub time_ns: u64,
    /// Process id (thread group).
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
}

/// Bits of [`Header::flags`] in a [`Doorbell`].
pub mod doorbell_flags {
    /// A read of the process's memory failed: fields that depend on it are zero.
    pub const UNREADABLE: u16 = 1;
    /// Packets before the first walked one are missing: their slots have been reused since.
    pub const LAPPED: u16 = 2;
    /// The walk ended at its bound, before `end`. The recorder must read the rest.
    pub const TRUNCATED: u16 = 4;
    /// The value published an index that is not reserved yet. The walk ends at the write index.
    pub const BEYOND: u16 = 8;
    /// The queue was not seen before at this address (no CREATE_QUEUE observed). Its walk starts at the read index.
    pub const ADOPTED: u16 = 16;
    /// The queue is a proxy in memory, which no GPU reads. It belongs to a tool, in front of a real queue.
    pub const PROXY: u16 = 32;
    /// A [`Packets`](super::Packets) record that no doorbell led to: the GPU had taken the packets when a thread ended the queue.
    pub const TAKEN: u16 = 64;
}

/// A store to the doorbell of an AQL queue, with the first packet that the store publishes.
///
/// The walk covers indexes `first..end`. `count` of them (0 or 1) are in `packet`. The others are in [`Packets`] records that the
/// same program run submits directly before this record.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Doorbell {
    /// Header; [`doorbell_flags`].
    pub header: Header,
    /// User address of the `amd_queue_t`.
    pub queue: u64,
    /// The value that the caller stores: index of the last published packet.
    pub value: u64,
    /// First index of the walk. Every lower index was captured at an earlier doorbell, or is lost.
    pub first: u64,
    /// One past the last index of the walk (`first == end`: nothing new).
    pub end: u64,
    /// Write index, read before the packets were copied.
    pub write_index: u64,
    /// Read index, read before the packets were copied.
    pub read_index: u64,
    /// For `packet`: see [`Packets::limit`].
    pub limit: u64,
    /// User address of the ring.
    pub base: u64,
    /// Packets in the ring.
    pub size: u32,
    /// 1 if `packet` contains index `first`, else 0.
    pub count: u32,
    /// See [`Packets`]; bit 0 is for `packet`.
    pub ready: u64,
    /// The stamps of `packet`; see [`Packets`].
    pub stamps: Stamps,
    /// One past the highest index that earlier doorbells published, including doorbells whose records were lost; [`UNKNOWN`] if the
    /// queue was not known before.
    pub rung_end: u64,
    /// The API call that the thread is in.
    pub call: Call,
    /// The packet at `first`.
    pub packet: Packet,
}

/// Upper half of the attach cookie of a probe at a function that rings a proxy.
pub const PROXY_SITE: u32 = 1;

/// An unknown index.
pub const UNKNOWN: u64 = u64::MAX;

/// The maximum number of packets in a [`Packets`] record.
pub const PACKETS_PER_RECORD: usize = 16;

/// A run of packets of one walk; see [`Doorbell`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Packets {
    /// Header; `PROXY` or `TAKEN` of [`doorbell_flags`].
    pub header: Header,
    /// User address of the `amd_queue_t`.
    pub queue: u64,
    /// Index of `packets[0]`.
    pub first: u64,
    /// One past the highest index whose producer may write: the write index, but at most the read index + `size` (a producer that
    /// reserved beyond waits). Read after the packets: index `i` still has its slot iff `limit <= i + size`.
    pub limit: u64,
    /// Read index, read before the packets were copied.
    pub read_index: u64,
    /// The number of filled `packets`.
    pub count: u32,
    /// Packets in the ring.
    pub size: u32,
    /// Bit `i`: the queue is profiled, the completion signal of `packets[i]` was read after the packet, and its value was 1. So one
    /// completion is still to come: that of this packet.
    pub ready: u64,
    /// See the [`Doorbell`] of the walk.
    pub rung_end: u64,
    /// See the [`Doorbell`] of the walk.
    pub value: u64,
    /// The API call that the thread is in.
    pub call: Call,
    /// The packets.
    pub packets: [Packet; PACKETS_PER_RECORD],
    /// The content of the `ready` completion signals: the times of the packet that used the signal before.
    pub stamps: [Stamps; PACKETS_PER_RECORD],
}

/// The maximum number of command bytes in an [`SdmaDoorbell`]. A copy with all its waits and signals has 100 to 200.
pub const SDMA_COMMANDS_LEN: usize = 512;

/// A store to the doorbell of an SDMA user queue by ROCr's BlitSdma.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SdmaDoorbell {
    /// Header; [`doorbell_flags::UNREADABLE`].
    pub header: Header,
    /// User address of the queue's write pointer: `write_pointer_address` of its CREATE_QUEUE.
    pub write_pointer: u64,
    /// Byte offset in the command stream of the start of this submission.
    pub begin: u64,
    /// Byte offset of its end: the doorbell's value.
    pub end: u64,
    /// User address of the ring; 0 if the queue's creation was not seen, or the ring's indexes have 32 bits.
    pub ring_base: u64,
    /// Size of the ring in bytes: a power of two.
    pub ring_bytes: u64,
    /// Filled bytes of `commands`: all bytes between `begin` and `end`, or as many as fit; 0 if they could not be read.
    pub len: u32,
    /// Unused.
    pub pad: u32,
    /// The commands from `begin` on, as they were in the ring.
    pub commands: [u8; SDMA_COMMANDS_LEN],
    /// The API call that the thread is in.
    pub call: Call,
}

/// The number of bytes kept of an ioctl's argument. No KFD argument is longer, except GET_PROCESS_APERTURES (400).
pub const IOCTL_ARG_LEN: usize = 128;

/// Bits of [`Header::flags`] in an [`Ioctl`].
pub mod ioctl_flags {
    /// The argument could not be read at entry.
    pub const IN_UNREADABLE: u16 = 1;
    /// The argument could not be read at exit.
    pub const OUT_UNREADABLE: u16 = 2;
    /// The argument is longer than [`super::IOCTL_ARG_LEN`]; only its start is kept.
    pub const SHORTENED: u16 = 4;
    /// The thread exited inside the call: no result.
    pub const NEVER_RETURNED: u16 = 8;
}

/// One ioctl on a KFD or DRM device, from entry to exit. `header.time_ns` is the time of entry.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ioctl {
    /// Header; [`ioctl_flags`].
    pub header: Header,
    /// Exit, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// User address of the argument.
    pub arg: u64,
    /// Result: 0 or more, or a negative errno.
    pub ret: i64,
    /// The command, low 32 bits.
    pub cmd: u32,
    /// File descriptor.
    pub fd: i32,
    /// Valid bytes in `arg_in` and `arg_out`.
    pub len: u32,
    /// Unused.
    pub pad: u32,
    /// The argument at entry.
    pub arg_in: [u8; IOCTL_ARG_LEN],
    /// The argument at exit.
    pub arg_out: [u8; IOCTL_ARG_LEN],
}

/// How a producer moved a write index: [`Header::flags`] of a [`Reserve`].
pub mod reserve_op {
    /// `hsa_queue_add_write_index_*`: `arg` packets.
    pub const ADD: u16 = 1;
    /// `hsa_queue_store_write_index_*`: to `arg`.
    pub const STORE: u16 = 2;
    /// `hsa_queue_cas_write_index_*`: from `arg` to `arg2`, if the index is still `arg`.
    pub const CAS: u16 = 3;
}

/// The entry of a function that advances a queue's write index.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    /// Header; [`reserve_op`].
    pub header: Header,
    /// The `hsa_queue_t` that the caller named.
    pub queue: u64,
    /// First argument after the queue.
    pub arg: u64,
    /// Second argument after the queue (cas).
    pub arg2: u64,
    /// Write index at entry; another producer may move it before the call does. `u64::MAX` if unreadable.
    pub write_index: u64,
}

/// The event of a task: [`Header::flags`] of a [`Task`].
pub mod task_op {
    /// A traced process created the child process `child`.
    pub const FORK: u16 = 1;
    /// The process runs a new program.
    pub const EXEC: u16 = 2;
    /// The process's first thread exited.
    pub const EXIT: u16 = 3;
    /// The process is traced from now on, because it began to use the KFD while tracer traces every process of the machine.
    pub const ENTERED: u16 = 4;
}

/// Fork, exec or exit of a traced process, or the event that made it traced.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Header; [`task_op`].
    pub header: Header,
    /// Id of the new process (fork).
    pub child: u32,
    /// Exit code as the kernel keeps it (exit only); `u32::MAX` if unknown.
    pub exit_code: u32,
    /// Name of the task.
    pub comm: [u8; 16],
}

/// The single word of the map COUNTING: what user space allows the programs to do (bits), and above it the epoch, which the programs
/// count.
pub mod gate {
    /// Submissions of traced processes count.
    pub const COUNTS: u64 = 1;
    /// A process that begins to use the KFD becomes traced, if every process of the machine is to be traced.
    pub const ADMITS: u64 = 2;
    /// The unit of the epoch. An epoch ends when a queue is created, or a process ends or runs a new program: what a program learned
    /// from a process's memory may be wrong from then on.
    pub const EPOCH: u64 = 1 << 16;
}

/// The reason for a pause: [`Header::flags`] of a [`Hold`].
pub mod hold_reason {
    /// The process mapped a file executable.
    pub const MAPPED: u16 = 1;
    /// The process entered `hsa_init`. The runtime's API table is now filled.
    pub const RUNTIME_INIT: u16 = 2;
    /// The process's runtime changed its list of code objects.
    pub const CODE_OBJECTS: u16 = 3;
    /// The process made its first KFD ioctl.
    pub const ENTERED: u16 = 4;
    /// The process received a queue that is a proxy.
    pub const PROXY: u16 = 5;
    /// As [`CODE_OBJECTS`], but nobody read the list after the first of several changes. The record's time is that of the last one;
    /// its site is the time from the first one to it, ns. No program writes this one.
    pub const CODE_OBJECTS_BEHIND: u16 = 6;
}

/// A process was stopped (SIGSTOP) until the recorder resumes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Header; [`hold_reason`].
    pub header: Header,
    /// Address of the mapped file. For a change of the code objects, the address of the list (`_amdgpu_r_debug`). For a proxy, the
    /// address of the object whose functions ring it, 0 if it could not be read.
    pub address: u64,
    /// Result of the request to stop the process: 0, or a negative errno. After an error the process continues, and may run ahead
    /// of its probes.
    pub stopped: i64,
    /// Distinguishes programs that run one after the other at the same process id.
    pub generation: u32,
    /// The pause's entry in the map PAUSES.
    pub slot: u32,
    /// The token that identifies the entry.
    pub token: u64,
    /// The file that was mapped; inode 0 if the file is not known.
    pub file: FileKey,
}

/// Bits of [`Header::flags`] in a [`DriverCall`].
pub mod driver_flags {
    /// The current process is traced.
    pub const TRACED: u16 = 1;
}

/// One call of a probed kernel function, from entry to return. `header.time_ns` is the time of entry. `header` names the thread
/// that ran the function. For evictions and restores this is a kernel thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriverCall {
    /// Header; [`driver_flags`].
    pub header: Header,
    /// Return, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// Address of the function.
    pub function: u64,
    /// The content of the return register. For functions that return `int`, only the low half counts.
    pub ret: i64,
    /// Facts in the arguments ([`crate::driver_plan::fact`]).
    pub facts: [u64; crate::driver_plan::FACTS],
    /// A bit for each of them that was read.
    pub has: u32,
    /// Unused.
    pub pad: u32,
}

/// Bits of [`Header::flags`] in an [`HsaQueue`].
pub mod hsa_queue_flags {
    /// The queue is a proxy: its doorbell is not a GPU's doorbell, but a signal in memory.
    pub const PROXY: u16 = 1;
}

/// A call of `hsa_queue_create` that succeeded. `header.time_ns` is the time of entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HsaQueue {
    /// Header; [`hsa_queue_flags`].
    pub header: Header,
    /// Return from the function, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// The returned handle, which is the address of the `amd_queue_t`, or of an object that a tool put in its place; 0 if it could
    /// not be read, or the entry was not seen.
    pub queue: u64,
    /// User address of the ring of a proxy; 0 if it could not be read.
    pub base: u64,
    /// Packets in the ring of a proxy; 0 if it could not be read.
    pub size: u32,
    /// Unused.
    pub pad: u32,
}

/// Bits of [`Header::flags`] in a [`Progress`].
pub mod progress_flags {
    /// The bits of the occasion.
    pub const OCCASION: u16 = 3;
    /// The thread enters DESTROY_QUEUE.
    pub const DESTROY: u16 = 0;
    /// The thread returns from a DESTROY_QUEUE that succeeded.
    pub const DESTROYED: u16 = 1;
    /// The thread exits, and its process with it.
    pub const PROCESS_END: u16 = 2;
}

/// A sample of the two indexes of an AQL queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Header; [`progress_flags`]. Its time is the time before the read.
    pub header: Header,
    /// User address of the `amd_queue_t`.
    pub queue: u64,
    /// Time after the read, CLOCK_MONOTONIC ns.
    pub after_ns: u64,
    /// Read index, read first.
    pub read_index: u64,
    /// Write index.
    pub write_index: u64,
    /// One past the highest index that doorbells published before the sample, including doorbells whose records were lost;
    /// [`UNKNOWN`] if this queue's walks are not known.
    pub rung_end: u64,
}

/// The times when a packet ran, in ticks of its GPU's clock. The GPU writes them into the packet's completion signal if the queue
/// is profiled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The start of the packet.
    pub start: u64,
    /// The end of the packet.
    pub end: u64,
}

/// The state of a completion signal when it was read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalState {
    /// Handle of the signal, which is the user address of the `amd_signal_t`; 0 if there is none, or it could not be read.
    pub signal: u64,
    /// The signal's value, read before the stamps. The GPU writes the stamps before the value.
    pub value: i64,
    /// The stamps of the packet that last completed on the signal.
    pub stamps: Stamps,
}

/// The number of signals in a [`Signals`] record.
pub const SIGNALS_PER_RECORD: usize = 16;

/// The completion signals of some of a queue's last packets, which are consecutive in the ring. A thread that ends the queue reads
/// them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    /// Header. Its time is the time before the reads.
    pub header: Header,
    /// Time after the reads, CLOCK_MONOTONIC ns.
    pub after_ns: u64,
    /// The signals.
    pub signals: [SignalState; SIGNALS_PER_RECORD],
}

pub use self::api::{ApiCall, Call, NO_STREAM, api_flags};
pub use self::driver_event::{DriverEvent, DriverEventLayout, driver_event_flags, driver_event_has, driver_event_kind};
pub use self::loss::LossSource;
pub use self::next_doorbell::{NEXT_DOORBELLS, NextDoorbell};
pub use self::ring_job::{EventLayout, NAME_LEN, RingJob, StructLayout, ring_flags, ring_step};
pub use self::stack::{STACK_LEN, STACK_PIECE, STACK_SMALL_PIECE, StackSample};
