//! The view of kernels, by how often they are dispatched.

use tracer_core::live::{KernelRow, Picture};
use tracer_core::units::{count, duration, rate};

use crate::{
    cells::UNKNOWN,
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<KernelRow>] = columns! {
    "count" 7 0 right: |k, _| count(k.count), |a, b| b.count.cmp(&a.count);
    "disp/s" 7 1 right: |k, _| rate(k.per_s), |a, b| greatest(Some(a.per_s), Some(b.per_s));
    "process" 12 3 left: |k, _| k.comm.clone().unwrap_or_else(|| UNKNOWN.to_owned()), |a, b| a.comm.cmp(&b.comm);
    "pid" 7 4 right: |k, _| k.pid.to_string(), |a, b| a.pid.cmp(&b.pid);
    "last" 7 2 right: |k, _| duration(k.last_age_ns), |a, b| a.last_age_ns.cmp(&b.last_age_ns);
    "kernel" 0 0 left: |k, _| name(k), |a, b| name(a).cmp(&name(b));
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a KernelRow> {
    rows::of(&picture.kernels, COLUMNS, choice, |kernel| {
        let comm = kernel.comm.as_deref().unwrap_or_default();
        format!("{} {comm} {}", kernel.pid, name(kernel))
    })
}

/// Returns the kernel's name, or the address of its descriptor if the name is unknown.
pub fn name(kernel: &KernelRow) -> String {
    kernel
        .name
        .clone()
        .unwrap_or_else(|| format!("{:#x}", kernel.kernel_object))
}
