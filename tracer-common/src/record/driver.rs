//! Calls of kernel driver functions.

use super::Header;

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
}
