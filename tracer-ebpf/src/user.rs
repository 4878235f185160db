//! Reads of the traced process's memory. A page that is not resident cannot be faulted in here. Then the read fails, and the caller
//! says so in its record.

use aya_ebpf::helpers::{bpf_probe_read_user, generated};
use core::ffi::c_void;

/// Reads a `T` at the user address; any bytes must be a valid `T`.
#[inline(always)]
pub fn read<T: Copy>(address: u64) -> Option<T> {
    // SAFETY: the helper checks the address itself and copies into its own value; callers use plain data only.
    unsafe { bpf_probe_read_user(address as *const T) }.ok()
}

/// Copies `len` bytes from the user address to `to`. Returns whether all of them could be read.
///
/// # Safety
/// `to` must be valid for writes of `len` bytes. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, len: u32, address: u64) -> bool {
    // SAFETY: the caller guarantees that `to` is valid; the helper checks the user address.
    unsafe { generated::bpf_probe_read_user(to.cast::<c_void>(), len, address as *const c_void) == 0 }
}
