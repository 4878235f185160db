//! Calls of HIP, HSA and OpenCL functions.

use super::Header;

/// Bits of [`Header::flags`] in an [`ApiCall`].
pub mod api_flags {
    /// The function was left without a return (an exception, `longjmp`), or the thread exited in it: no result.
    pub const NEVER_RETURNED: u16 = 1;
    /// `object` is known.
    pub const OBJECT: u16 = 2;
    /// `bytes` is known.
    pub const BYTES: u16 = 4;
}

/// No known stream. As a `hipStream_t` this value would be a pointer to nothing.
pub const NO_STREAM: u64 = u64::MAX;

/// The API call during which an event of a thread happened.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Number of the innermost open call, from 1; 0 if there is none, or calls are not recorded.
    pub call: u64,
    /// Stream of the innermost open call that names one; [`NO_STREAM`] if none does.
    pub stream: u64,
}

impl Call {
    /// No API call.
    pub const NONE: Self = Self {
        call: 0,
        stream: NO_STREAM,
    };
}

/// One call of a function of [`crate::api::FUNCTIONS`], from entry to exit. `header.time_ns` is the time of entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ApiCall {
    /// Header; [`api_flags`].
    pub header: Header,
    /// Exit, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// Number of the call in the recording, from 1.
    pub call: u64,
    /// Number of the enclosing call of this thread; 0 if there is none.
    pub parent: u64,
    /// The function's stream argument; [`NO_STREAM`] if it has none.
    pub stream: u64,
    /// The number of bytes that the call concerns.
    pub bytes: u64,
    /// The object of the call, or the object that the call created.
    pub object: u64,
    /// The return register.
    pub ret: i64,
    /// Number of the function.
    pub function: u32,
    /// Unused.
    pub pad: u32,
}
