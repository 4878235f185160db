//! The view of calls of HIP, HSA and OpenCL functions.

use tracer_core::live::{ApiRow, Picture};
use tracer_core::units::{count, duration, rate};

use crate::{
    cells::known,
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The initial sort column: functions with the longest sum are at the top.
pub const FIRST: usize = 4;

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<ApiRow>] = columns! {
    "function" 0 0 left: |f, _| f.function.clone(), |a, b| a.function.cmp(&b.function);
    "layer" 6 7 left: |f, _| f.layer.clone(), |a, b| a.layer.cmp(&b.layer);
    "calls" 6 0 right: |f, _| count(f.count), |a, b| b.count.cmp(&a.count);
    "calls/s" 7 5 right: |f, _| known(f.per_s, rate), |a, b| greatest(a.per_s, b.per_s);
    "total" 7 1 right: |f, _| known(f.total_ns, duration), |a, b| greatest(a.total_ns, b.total_ns);
    "mean" 7 2 right: |f, _| known(f.mean_ns, duration), |a, b| greatest(a.mean_ns, b.mean_ns);
    "p50" 7 6 right: |f, _| known(f.ns.map(|ns| ns.0), duration), |a, b| greatest(a.ns, b.ns);
    "p99" 7 3 right: |f, _| known(f.ns.map(|ns| ns.1), duration), |a, b| greatest(a.ns.map(|ns| ns.1), b.ns.map(|ns| ns.1));
    "errors" 6 4 right: |f, _| count(f.errors), |a, b| b.errors.cmp(&a.errors);
    "open" 6 8 right: |f, _| count(f.unreturned), |a, b| b.unreturned.cmp(&a.unreturned);
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a ApiRow> {
    rows::of(&picture.api, COLUMNS, choice, |function| {
        format!("{} {}", function.layer, function.function)
    })
}
