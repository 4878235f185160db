//! Calls of HIP and HSA functions.

use tracer_common::api;

use super::Origin;
use crate::fact::Durations;

/// The API call that a thread was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCall {
    /// Number of the innermost call.
    pub call: u64,
    /// Stream of the innermost call that names a stream; `None` if no call does.
    pub stream: Option<u64>,
}

/// A complete call of a HIP or HSA function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiCall {
    /// Thread and time of entry.
    pub origin: Origin,
    /// Number in the recording, from 1.
    pub call: u64,
    /// Number of the enclosing call on the same thread.
    pub parent: Option<u64>,
    /// The function.
    pub function: &'static api::Function,
    /// Time of return, and the return register; `None` if no return was seen.
    pub returned: Option<(u64, i64)>,
    /// The function's stream argument.
    pub stream: Option<u64>,
    /// Number of bytes that the call is about.
    pub bytes: Option<u64>,
    /// The object that the call is about, or that it created.
    pub object: Option<u64>,
}

/// Counts of the calls of one HIP or HSA function so far, which are not events of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiStats {
    /// Time of the sample.
    pub time_ns: u64,
    /// Number of the counter. A counter belongs to one process, or to all processes beyond the limit.
    pub counter: u32,
    /// Process; `None` for all processes beyond the limit.
    pub pid: Option<u32>,
    /// The function.
    pub function: &'static api::Function,
    /// The counts.
    pub counts: api::stats::Counts,
    /// Durations of the calls that returned.
    pub durations: Durations,
}
