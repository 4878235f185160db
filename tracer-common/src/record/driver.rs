//! Calls of functions of the kernel driver.

use super::Header;

/// Bits of [`Header::flags`] in a [`DriverCall`].
pub mod driver_flags {
    /// The current process is traced.
    pub const TRACED: u16 = 1;
}

/// One call of a probed function of the kernel, from entry to return; `header.time_ns` is the entry. `header` names the
/// thread that ran it, which for evictions and restores is one of the kernel's own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DriverCall {
    /// Header; [`driver_flags`].
    pub header: Header,
    /// Return, CLOCK_MONOTONIC ns.
    pub exit_ns: u64,
    /// Address of the function.
    pub function: u64,
    /// What the return register held; of functions that return `int` the low half counts.
    pub ret: i64,
}
