//! The view of ioctls on KFD and DRM devices.

use tracer_core::live::{IoctlRow, Picture};

use crate::{
    picks::{self, greatest},
    state::Top,
    table::Column,
    units::{count, duration, known, rate},
};

/// The columns of this view.
pub const COLUMNS: &[Column<IoctlRow>] = &[
    Column {
        title: "count",
        width: 7,
        rank: 0,
        left: false,
        cell: |i, _| count(i.count),
        order: |a, b| b.count.cmp(&a.count),
    },
    Column {
        title: "per s",
        width: 7,
        rank: 2,
        left: false,
        cell: |i, _| rate(i.per_s),
        order: |a, b| greatest(Some(a.per_s), Some(b.per_s)),
    },
    Column {
        title: "errors",
        width: 6,
        rank: 1,
        left: false,
        cell: |i, _| count(i.errors),
        order: |a, b| b.errors.cmp(&a.errors),
    },
    Column {
        title: "p50",
        width: 6,
        rank: 4,
        left: false,
        cell: |i, _| known(i.ns.map(|ns| ns.0), duration),
        order: |a, b| greatest(a.ns, b.ns),
    },
    Column {
        title: "p99",
        width: 6,
        rank: 3,
        left: false,
        cell: |i, _| known(i.ns.map(|ns| ns.1), duration),
        order: |a, b| greatest(a.ns.map(|ns| ns.1), b.ns.map(|ns| ns.1)),
    },
    Column {
        title: "dev",
        width: 3,
        rank: 5,
        left: true,
        cell: |i, _| i.device.clone(),
        order: |a, b| a.device.cmp(&b.device),
    },
    Column {
        title: "ioctl",
        width: 0,
        rank: 0,
        left: true,
        cell: |i, _| i.name.clone(),
        order: |a, b| a.name.cmp(&b.name),
    },
];

/// Returns the rows in their order.
pub fn rows<'a>(top: &Top, picture: &'a Picture) -> Vec<&'a IoctlRow> {
    picks::rows(&picture.ioctls, COLUMNS, top, |ioctl| {
        format!("{} {}", ioctl.device, ioctl.name)
    })
}
