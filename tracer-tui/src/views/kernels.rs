//! The view of kernels, by how often they are dispatched.

use tracer_core::live::{KernelRow, Picture};

use crate::{
    picks::{self, greatest},
    state::Top,
    table::Column,
    units::{count, duration, rate},
};

/// The columns of this view.
pub const COLUMNS: &[Column<KernelRow>] = &[
    Column {
        title: "count",
        width: 7,
        rank: 0,
        left: false,
        cell: |k, _| count(k.count),
        order: |a, b| b.count.cmp(&a.count),
    },
    Column {
        title: "disp/s",
        width: 7,
        rank: 1,
        left: false,
        cell: |k, _| rate(k.per_s),
        order: |a, b| greatest(Some(a.per_s), Some(b.per_s)),
    },
    Column {
        title: "pid",
        width: 7,
        rank: 3,
        left: false,
        cell: |k, _| k.pid.to_string(),
        order: |a, b| a.pid.cmp(&b.pid),
    },
    Column {
        title: "last",
        width: 6,
        rank: 2,
        left: false,
        cell: |k, _| duration(k.last_age_ns),
        order: |a, b| a.last_age_ns.cmp(&b.last_age_ns),
    },
    Column {
        title: "kernel",
        width: 0,
        rank: 0,
        left: true,
        cell: |k, _| name(k),
        order: |a, b| name(a).cmp(&name(b)),
    },
];

/// Returns the rows in their order.
pub fn rows<'a>(top: &Top, picture: &'a Picture) -> Vec<&'a KernelRow> {
    picks::rows(&picture.kernels, COLUMNS, top, |kernel| {
        format!("{} {}", kernel.pid, name(kernel))
    })
}

/// Returns the kernel's name, or the address of its descriptor if the name is unknown.
pub fn name(kernel: &KernelRow) -> String {
    kernel
        .name
        .clone()
        .unwrap_or_else(|| format!("{:#x}", kernel.kernel_object))
}
