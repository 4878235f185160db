//! Calls of functions of HIP and HSA.

use std::borrow::Cow;

/// A call of a function of HIP or HSA by a traced process, from entry to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCall {
    /// Number in the trace, from 1, in the order of entry.
    pub call: u64,
    /// Number of the call of the same thread around it; `None` if there is none that is recorded.
    pub parent: Option<u64>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Entry.
    pub enter_ns: u64,
    /// Return; `None` if none was seen: see `ret`.
    pub exit_ns: Option<u64>,
    /// `hip` or `hsa`.
    pub layer: Cow<'static, str>,
    /// Exported name of the function.
    pub function: Cow<'static, str>,
    /// What it returned, `hipError_t` and `hsa_status_t` as 32 bits; `None` if the function was left without a return, its
    /// thread ended in it, or the recording did.
    pub ret: Option<i64>,
    /// Whether that is an error; `None` if it did not return.
    pub failed: Option<bool>,
    /// Its stream argument, a `hipStream_t`: 0 is the default stream; `None` if the function has none.
    pub stream: Option<u64>,
    /// How many bytes it is about; `None` if the function does not say.
    pub bytes: Option<u64>,
    /// What it is about (a kernel's function, a destination, a handle), or the handle or address that it made.
    pub object: Option<u64>,
    /// Dispatches that its thread rang for in it, in calls inside it too: those that have its number, or that of one inside.
    pub dispatches: u64,
    /// SDMA submissions likewise.
    pub copies: u64,
}
