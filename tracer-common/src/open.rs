//! Calls that have begun and not ended: values of maps that the programs keep, and that user space reads once, when no
//! program changes them any more.

use crate::record::IOCTL_ARG_LEN;

/// API calls that are kept of each thread: a power of two. HIP calls HSA, and that calls nothing of the catalogue.
pub const DEPTH: u32 = 8;

/// An ioctl, the value of the map `ENTERED`.
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
    /// What the argument pointed to at entry.
    pub arg_in: [u8; IOCTL_ARG_LEN],
}

/// An API call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenCall {
    /// Where its return address lies: which return is its own.
    pub sp: u64,
    /// Its number; where calls are counted only, the place where.
    pub call: u64,
    /// Entry, CLOCK_MONOTONIC ns.
    pub enter_ns: u64,
    /// The site's [`crate::api::Cookie`].
    pub cookie: u64,
    /// Its stream argument, or `record::NO_STREAM`.
    pub stream: u64,
    /// How many bytes it is about.
    pub bytes: u64,
    /// What it is about, or where it will store what it makes.
    pub object: u64,
    /// Number of the call around it, or 0.
    pub outer: u64,
    /// Stream of the calls around it, or `record::NO_STREAM`.
    pub outer_stream: u64,
}

/// A thread with its API calls, the value of the map `API_THREADS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadCalls {
    /// Number of the innermost open call, or 0.
    pub call: u64,
    /// Stream of the innermost one that names one, or `record::NO_STREAM`.
    pub stream: u64,
    /// How many are open.
    pub depth: u32,
    /// Of the process: calls of an ended one are never taken for those of another.
    pub generation: u32,
    /// The open calls, the outermost first; those beyond `depth` are old.
    pub frames: [OpenCall; DEPTH as usize],
}
