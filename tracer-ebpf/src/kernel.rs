//! Reads of the kernel's memory, at offsets that user space reads from format files and BTF.

use aya_ebpf::helpers::{bpf_probe_read_kernel, generated::bpf_probe_read_kernel_str};
use tracer_common::{offset::ABSENT, record::NAME_LEN};

/// `args` of a syscall tracepoint start here; each takes 8 bytes (events/syscalls/sys_enter_*/format).
pub const SYSCALL_ARGS: usize = 16;

/// Reads a `T`; `None` if the layout lacks the field or the field cannot be read.
///
/// # Safety
/// Any bytes must be a valid `T`.
#[inline(always)]
pub unsafe fn at<T: Copy>(base: u64, offset: u32) -> Option<T> {
    if offset == ABSENT {
        return None;
    }
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_kernel((base + u64::from(offset)) as *const T) }.ok()
}

/// Copies a string, at most `NAME_LEN` bytes including the closing 0.
///
/// # Safety
/// `to` must be valid for writes of `NAME_LEN` bytes. The verifier checks this too.
#[inline(always)]
pub unsafe fn name(to: *mut u8, from: u64) -> bool {
    // SAFETY: the caller's promise; the helper checks the address itself.
    unsafe { bpf_probe_read_kernel_str(to.cast(), NAME_LEN as u32, from as *const _) > 0 }
}
