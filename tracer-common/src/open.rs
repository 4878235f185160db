//! Calls that have begun and not ended. These are values of maps that the programs keep. User space reads them once, when the
//! programs no longer change them.

use crate::record::IOCTL_ARG_LEN;

/// The number of API calls kept for each thread: a power of two. HIP and OpenCL call HSA, and HSA calls
/// back its caller in a few functions.
pub const DEPTH: u32 = 8;

/// An open ioctl: the value of the map `ENTERED`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenIoctl {
    /// Entry, CLOCK_MONOTONIC ns.
    pub time_ns: u64,
    /// The argument, as passed.
    pub arg: u64,
    /// The command.
    pub cmd: u32,
    /// File descriptor.
    pub fd: i32,
    /// Bytes of `arg_in` that are set.
    pub len: u32,
    /// `record::ioctl_flags`.
    pub flags: u32,
    /// The argument's content at entry.
    pub arg_in: [u8; IOCTL_ARG_LEN],
}

/// An open API call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenCall {
    /// Address of the return address, which identifies the call's own return.
    pub sp: u64,
    /// The number of the call; for a call that is only counted, its place in the counters.
    pub call: u64,
    /// Entry, CLOCK_MONOTONIC ns.
    pub enter_ns: u64,
    /// The [`crate::api::Cookie`] of the probe site.
    pub cookie: u64,
    /// The stream argument, or `record::NO_STREAM`.
    pub stream: u64,
    /// The number of bytes that the call concerns.
    pub bytes: u64,
    /// The object of the call, or the address where the call will store the object that it creates.
    pub object: u64,
    /// Number of the enclosing call, or 0.
    pub outer: u64,
    /// Stream of the enclosing calls, or `record::NO_STREAM`.
    pub outer_stream: u64,
}

/// A thread with its API calls: the value of the map `API_THREADS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadCalls {
    /// Number of the innermost open call that is not only counted, or 0.
    pub call: u64,
    /// Stream of the innermost call that names one, or `record::NO_STREAM`.
    pub stream: u64,
    /// The number of open calls.
    pub depth: u32,
    /// Generation of the process, so that calls of a process that exited are never taken for those of another.
    pub generation: u32,
    /// The open calls, the outermost first. Entries beyond `depth` are old.
    pub frames: [OpenCall; DEPTH as usize],
}
