//! Calls of HIP and HSA functions.

use tracer_common::api;

use super::Origin;
use crate::fact::Durations;

/// The API call that a thread was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InCall {
    /// Number of the innermost one.
    pub call: u64,
    /// Stream of the innermost one that names a stream; `None` if none does.
    pub stream: Option<u64>,
}

/// A call of a function of HIP or HSA, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiCall {
    /// Who, and the time of entry.
    pub origin: Origin,
    /// Number in the recording, from 1.
    pub call: u64,
    /// Number of the call of this thread around it.
    pub parent: Option<u64>,
    /// Which function.
    pub function: &'static api::Function,
    /// Time of return and the return register; `None` if none was seen.
    pub returned: Option<(u64, i64)>,
    /// The function's stream argument.
    pub stream: Option<u64>,
    /// How many bytes it is about.
    pub bytes: Option<u64>,
    /// What it is about, or what it made.
    pub object: Option<u64>,
}

/// What was counted by now of the calls of one function of HIP or HSA, which are no events of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiStats {
    /// Time of the look.
    pub time_ns: u64,
    /// Number of what counts them: of one process, or of all that were too many.
    pub counter: u32,
    /// Process; `None` for all that were too many.
    pub pid: Option<u32>,
    /// Which function.
    pub function: &'static api::Function,
    /// The numbers.
    pub counts: api::stats::Counts,
    /// Durations of those that returned.
    pub durations: Durations,
}
