//! Calls of HIP, HSA and OpenCL functions.

use std::borrow::Cow;

use super::table;

table! {
    /// Calls of functions of HIP, HSA and OpenCL by traced processes (`record --api`): the functions of a fixed list, as called by
    /// the users of the libraries. Calls that the HSA runtime makes itself are left out. Calls that HIP and OpenCL make, including
    /// those to HSA, are inside the enclosing call. Calls of frequent functions are in `api_stats` instead, unless `--api-rows`
    /// asks for them.
    pub struct ApiCall: "api_calls" by enter_ns, Events {
        /// Number of the call in the trace, from 1, in the order of entry.
        pub call: u64,
        /// Number of the call of the same thread around it; null if there is none that is recorded.
        pub parent: Option<u64>,
        /// Process.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Entry.
        pub enter_ns: u64 => "ns",
        /// Return; null if none was seen.
        pub exit_ns: Option<u64> => "ns",
        /// Library: `hip`, `hsa` or `opencl`.
        pub layer: Cow<'static, str>,
        /// Exported name of the function.
        pub function: Cow<'static, str>,
        /// What it returned (`hipError_t`, `hsa_status_t`, a status of OpenCL, or a value such as a wait's); null if it was left
        /// without a return, its thread ended in it, or the recording did, and for a function that returns nothing.
        pub ret: Option<i64>,
        /// Whether that is an error (`hipErrorNotReady` is not); null if it did not return.
        pub failed: Option<bool>,
        /// Its stream argument (`hipStream_t`, or `cl_command_queue`), 0 for the default stream; null if the function has none.
        pub stream: Option<u64>,
        /// Number of bytes that the call concerns; null if the function has no such argument.
        pub bytes: Option<u64> => "bytes",
        /// Object of the call (kernel function, destination, handle), or the handle or address that it returned; null if there is
        /// none.
        pub object: Option<u64>,
        /// Dispatches whose `api_call` it is, or a call inside it.
        pub dispatches: u64 => "packets",
        /// Rows of `copies` under the same condition.
        pub copies: u64,
    }
}
