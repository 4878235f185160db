//! What a probe costs by itself: counts its hits and does nothing else. `tracer doctor` puts it into functions of its
//! own and measures them; `record` never attaches it.

use aya_ebpf::{
    macros::{map, uprobe},
    maps::PerCpuArray,
    programs::ProbeContext,
};

/// Hits, all sites together: shows that every call was seen.
#[map]
static COST_HITS: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Any instruction.
#[uprobe]
pub fn cost(_ctx: ProbeContext) -> u32 {
    if let Some(hits) = COST_HITS.get_ptr_mut(0) {
        // SAFETY: a per-CPU slot that only this program on this CPU writes.
        unsafe { *hits += 1 };
    }
    0
}
