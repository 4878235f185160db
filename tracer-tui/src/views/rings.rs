//! The view of the kernel driver's rings.

use ratatui::style::{Color, Modifier, Style};
use tracer_core::live::{Picture, RingRow};

use crate::{
    picks::{self, greatest},
    state::Top,
    table::Column,
    units::{count, duration, known, rate},
};

/// The columns of this view.
pub const COLUMNS: &[Column<RingRow>] = &[
    Column {
        title: "ring",
        width: 16,
        rank: 0,
        left: true,
        cell: |r, _| r.ring.clone(),
        order: |a, b| a.ring.cmp(&b.ring),
    },
    Column {
        title: "jobs/s",
        width: 7,
        rank: 1,
        left: false,
        cell: |r, _| rate(r.per_s),
        order: |a, b| greatest(Some(a.per_s), Some(b.per_s)),
    },
    Column {
        title: "jobs",
        width: 7,
        rank: 0,
        left: false,
        cell: |r, _| count(r.jobs),
        order: |a, b| b.jobs.cmp(&a.jobs),
    },
    Column {
        title: "traced",
        width: 7,
        rank: 2,
        left: false,
        cell: |r, _| count(r.traced),
        order: |a, b| b.traced.cmp(&a.traced),
    },
    Column {
        title: "waiting",
        width: 7,
        rank: 4,
        left: false,
        cell: |r, _| known(r.waiting_ns.map(|w| w.0), duration),
        order: |a, b| greatest(a.waiting_ns, b.waiting_ns),
    },
    Column {
        title: "p99",
        width: 6,
        rank: 6,
        left: false,
        cell: |r, _| known(r.waiting_ns.map(|w| w.1), duration),
        order: |a, b| greatest(a.waiting_ns.map(|w| w.1), b.waiting_ns.map(|w| w.1)),
    },
    Column {
        title: "running",
        width: 7,
        rank: 5,
        left: false,
        cell: |r, _| known(r.running_ns.map(|w| w.0), duration),
        order: |a, b| greatest(a.running_ns, b.running_ns),
    },
    Column {
        title: "p99",
        width: 6,
        rank: 7,
        left: false,
        cell: |r, _| known(r.running_ns.map(|w| w.1), duration),
        order: |a, b| greatest(a.running_ns.map(|w| w.1), b.running_ns.map(|w| w.1)),
    },
    Column {
        title: "made by",
        width: 0,
        rank: 3,
        left: true,
        cell: |r, _| made_by(r),
        order: |a, b| made_by(a).cmp(&made_by(b)),
    },
];

/// Returns the rows in their order.
pub fn rows<'a>(top: &Top, picture: &'a Picture) -> Vec<&'a RingRow> {
    picks::rows(&picture.rings, COLUMNS, top, |ring| {
        format!("{} {}", ring.ring, made_by(ring))
    })
}

/// Returns the style of a row. Rings with jobs of traced processes stand out: a bypass must not have such jobs.
pub fn style(ring: &RingRow) -> Style {
    if ring.traced > 0 {
        Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    }
}

fn made_by(ring: &RingRow) -> String {
    ring.reason
        .as_ref()
        .map_or_else(|| "clients".to_owned(), |reason| format!("driver: {reason}"))
}
