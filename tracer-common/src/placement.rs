//! Memory types of amdgpu buffers, as its trace events number them.
//!
//! Source: `TTM_PL_*` of `include/drm/ttm/ttm_placement.h` (the same in 6.1, 6.12 and 7.2), and `AMDGPU_PL_*` of
//! `drivers/gpu/drm/amd/amdgpu/amdgpu_ttm.h`, which continue from `TTM_PL_PRIV` and were only ever extended.

/// `-1`: the buffer was in no memory, or moves to none (amdgpu_bo_move of newer kernels).
pub const NONE: u32 = u32::MAX;

/// Returns the name of a memory type; `None` for a number that is not in the headers.
#[must_use]
pub const fn name(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "system",
        // TTM_PL_TT: system memory that the GPU reaches through its GART.
        1 => "gtt",
        2 => "vram",
        3 => "gds",
        4 => "gws",
        5 => "oa",
        6 => "preempt",
        7 => "doorbell",
        8 => "mmio-remap",
        NONE => "none",
        _ => return None,
    })
}
