//! The kernels that `hsa-dispatch` launches, in Rust, for AMD GPUs.
//!
//! Each kernel is a symbol `NAME` (its code) with a descriptor `NAME.kd` (the target of a dispatch packet's `kernel_object`).
//! Arguments are in the kernarg segment in natural C layout. One work-item handles one element, in one dimension; grids may be
//! larger than `n` but not smaller. README.md describes build and layouts.
#![no_std]
#![feature(
    abi_gpu_kernel,
    core_intrinsics,
    gpu_intrinsics,
    link_llvm_intrinsics,
    stdarch_amdgpu
)]
#![expect(
    internal_features,
    reason = "the dispatch packet and the steady clock have no stable interface yet"
)]

mod grid;

use core::sync::atomic::{AtomicU32, Ordering};

use grid::global_id;

unsafe extern "C" {
    /// A clock of constant frequency: `s_memrealtime` on gfx9 and gfx10, `s_sendmsg_rtn(GET_REALTIME)` from gfx11 on.
    #[link_name = "llvm.readsteadycounter"]
    safe fn steady_counter() -> u64;
}

/// `c[i] = a[i] + b[i]` for `i < n`.
///
/// # Safety
/// `a`, `b` and `c` point to `n` elements that the GPU may access; `c` is `a`, or `b`, or overlaps neither.
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn vector_add(a: *const f32, b: *const f32, c: *mut f32, n: u32) {
    let i = global_id();
    if i < n {
        let i = i as usize;
        // SAFETY: `i < n`, and the caller guarantees `n` elements.
        unsafe { *c.add(i) = *a.add(i) + *b.add(i) };
    }
}

/// `p[i] = value` for `i < n`.
///
/// # Safety
/// `p` points to `n` elements that the GPU may write.
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn fill(p: *mut u32, value: u32, n: u32) {
    let i = global_id();
    if i < n {
        // SAFETY: `i < n`, and the caller guarantees `n` elements.
        unsafe { *p.add(i as usize) = value };
    }
}

/// `y[i] = a * x[i] + y[i]` for `i < n`, rounded after the product and after the sum (not fused).
///
/// # Safety
/// `x` and `y` point to `n` elements that the GPU may access and do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn saxpy(a: f32, x: *const f32, y: *mut f32, n: u32) {
    let i = global_id();
    if i < n {
        let i = i as usize;
        // SAFETY: `i < n`, and the caller guarantees `n` elements.
        unsafe { *y.add(i) = a * *x.add(i) + *y.add(i) };
    }
}

/// `*out += input[0] + … + input[n - 1]`, modulo 2^32.
///
/// The sum is formed by atomic additions at agent scope or wider. `out` should be in the GPU's own memory, because additions to
/// host memory need PCIe atomics.
///
/// # Safety
/// `input` points to `n` elements and `out` to one that the GPU may access; `out` is not in `input`.
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn reduce(input: *const u32, out: *mut u32, n: u32) {
    let i = global_id();
    if i < n {
        // SAFETY: `i < n`, and the caller guarantees `n` elements.
        let value = unsafe { *input.add(i as usize) };
        // SAFETY: `out` is a valid, aligned word that is accessed atomically only while the kernel runs.
        unsafe { AtomicU32::from_ptr(out) }.fetch_add(value, Ordering::Relaxed);
    }
}

/// Keeps its wavefront busy until `clocks` ticks of the constant clock have passed (100 MHz on most GPUs; the runtime reports it as
/// the agent's timestamp frequency).
#[unsafe(no_mangle)]
pub extern "gpu-kernel" fn spin(clocks: u64) {
    let start = steady_counter();
    while steady_counter().wrapping_sub(start) < clocks {
        core::hint::spin_loop();
    }
}

/// Never reached, because no kernel can panic. A `no_std` crate must define it all the same.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::amdgpu::endpgm()
}
