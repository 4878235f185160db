//! The position of a work-item in its grid.

use core::arch::amdgpu::{workgroup_id_x, workitem_id_x};
use core::intrinsics::gpu::amdgpu_dispatch_ptr;

/// Offset of `workgroup_size_x` in a kernel dispatch packet (hsa.h, `hsa_kernel_dispatch_packet_t`).
const WORKGROUP_SIZE_X: usize = 4;

/// Returns the index of this work-item in the first dimension of the grid.
///
/// The workgroup size is the one that the dispatch requested, read from its packet.
#[inline(always)]
pub fn global_id() -> u32 {
    workgroup_id_x() * workgroup_size_x() + workitem_id_x()
}

#[inline(always)]
fn workgroup_size_x() -> u32 {
    // SAFETY: a kernel is always launched by a 64-byte packet, which stays in its queue until the kernel has finished.
    let size = unsafe { amdgpu_dispatch_ptr().byte_add(WORKGROUP_SIZE_X).cast::<u16>().read() };
    u32::from(size)
}
