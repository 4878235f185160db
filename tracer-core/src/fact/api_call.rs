//! Calls of HIP and HSA functions.

use std::borrow::Cow;

/// A call of a HIP or HSA function by a traced process, from entry to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCall {
    /// Number in the trace, from 1, in the order of entry.
    pub call: u64,
    /// Number of the enclosing call on the same thread; `None` if there is no recorded one.
    pub parent: Option<u64>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of entry.
    pub enter_ns: u64,
    /// Time of return; `None` if no return was seen: see `ret`.
    pub exit_ns: Option<u64>,
    /// `hip` or `hsa`.
    pub layer: Cow<'static, str>,
    /// Exported name of the function.
    pub function: Cow<'static, str>,
    /// Return value; `hipError_t` and `hsa_status_t` as 32 bits. `None` if the function was left without a return, or if the thread
    /// exited or the recording ended inside the call.
    pub ret: Option<i64>,
    /// Whether the return value is an error; `None` if the call did not return.
    pub failed: Option<bool>,
    /// Stream argument, a `hipStream_t`; 0 is the default stream; `None` if the function has none.
    pub stream: Option<u64>,
    /// Number of bytes that the call is about; `None` if the function does not say.
    pub bytes: Option<u64>,
    /// Object that the call is about (a kernel's function, a destination, a handle), or the handle or address that it created.
    pub object: Option<u64>,
    /// Number of dispatches that the thread rang for in this call or in calls inside it: dispatches with the number of this call or
    /// of a call inside it.
    pub dispatches: u64,
    /// Number of SDMA submissions, counted in the same way.
    pub copies: u64,
}
