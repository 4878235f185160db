//! The view of the kernel driver's rings.

use ratatui::style::{Color, Modifier, Style};
use tracer_core::live::{Picture, RingRow};
use tracer_core::units::{count, duration, rate};

use crate::{
    cells::known,
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<RingRow>] = columns! {
    "ring" 16 0 left: |r, _| r.ring.clone(), |a, b| a.ring.cmp(&b.ring);
    "jobs/s" 7 1 right: |r, _| rate(r.per_s), |a, b| greatest(Some(a.per_s), Some(b.per_s));
    "jobs" 7 0 right: |r, _| count(r.jobs), |a, b| b.jobs.cmp(&a.jobs);
    "traced" 7 2 right: |r, _| count(r.traced), |a, b| b.traced.cmp(&a.traced);
    "waiting p50" 11 4 right: |r, _| known(r.waiting_ns.map(|w| w.0), duration), |a, b| greatest(a.waiting_ns, b.waiting_ns);
    "waiting p99" 11 6 right: |r, _| known(r.waiting_ns.map(|w| w.1), duration),
        |a, b| greatest(a.waiting_ns.map(|w| w.1), b.waiting_ns.map(|w| w.1));
    "running p50" 11 5 right: |r, _| known(r.running_ns.map(|w| w.0), duration), |a, b| greatest(a.running_ns, b.running_ns);
    "running p99" 11 7 right: |r, _| known(r.running_ns.map(|w| w.1), duration),
        |a, b| greatest(a.running_ns.map(|w| w.1), b.running_ns.map(|w| w.1));
    "made by" 0 3 left: |r, _| made_by(r), |a, b| made_by(a).cmp(&made_by(b));
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a RingRow> {
    rows::of(&picture.rings, COLUMNS, choice, |ring| {
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
