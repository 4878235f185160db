//! The view of ioctls on KFD and DRM devices.

use tracer_core::live::{IoctlRow, Picture};
use tracer_core::units::{count, duration, rate};

use crate::{
    cells::known,
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<IoctlRow>] = columns! {
    "calls" 7 0 right: |i, _| count(i.count), |a, b| b.count.cmp(&a.count);
    "calls/s" 7 2 right: |i, _| rate(i.per_s), |a, b| greatest(Some(a.per_s), Some(b.per_s));
    "errors" 6 1 right: |i, _| count(i.errors), |a, b| b.errors.cmp(&a.errors);
    "p50" 7 4 right: |i, _| known(i.ns.map(|ns| ns.0), duration), |a, b| greatest(a.ns, b.ns);
    "p99" 7 3 right: |i, _| known(i.ns.map(|ns| ns.1), duration), |a, b| greatest(a.ns.map(|ns| ns.1), b.ns.map(|ns| ns.1));
    "dev" 3 5 left: |i, _| i.device.clone(), |a, b| a.device.cmp(&b.device);
    "ioctl" 0 0 left: |i, _| i.name.clone(), |a, b| a.name.cmp(&b.name);
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a IoctlRow> {
    rows::of(&picture.ioctls, COLUMNS, choice, |ioctl| {
        format!("{} {}", ioctl.device, ioctl.name)
    })
}
