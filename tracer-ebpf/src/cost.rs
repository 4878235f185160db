//! The cost of a probe by itself. `tracer doctor` attaches these programs to its own functions and measures them; `record` never
//! attaches them.

use aya_ebpf::{
    macros::{map, uprobe},
    maps::PerCpuArray,
    programs::ProbeContext,
};

/// Hits of all sites together. They show that every call was seen.
#[map]
static COST_HITS: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Counts a hit, at any instruction.
#[uprobe]
pub fn cost(_ctx: ProbeContext) -> u32 {
    if let Some(hits) = COST_HITS.get_ptr_mut(0) {
        // SAFETY: a per-CPU slot that only this program on this CPU writes.
        unsafe { *hits += 1 };
    }
    0
}

/// Does nothing: the least that a program costs.
#[uprobe]
pub fn empty(_ctx: ProbeContext) -> u32 {
    0
}
