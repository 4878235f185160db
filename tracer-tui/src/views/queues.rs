//! The view of all queues.

use std::cmp::Ordering;

use ratatui::style::{Color, Modifier, Style};
use tracer_core::live::{Picture, QueueRow, Share};

use crate::{
    picks::{self, greatest},
    state::Top,
    table::Column,
    units::{UNKNOWN, count, duration, known, rate, sparkline},
};

/// The initial sort column: stuck queues are at the top, then busy ones.
pub const FIRST: usize = 6;

/// The columns of this view.
pub const COLUMNS: &[Column<QueueRow>] = &[
    Column {
        title: "q",
        width: 4,
        rank: 0,
        left: false,
        cell: |q, _| q.queue.to_string(),
        order: |a, b| a.queue.cmp(&b.queue),
    },
    Column {
        title: "pid",
        width: 7,
        rank: 4,
        left: false,
        cell: |q, _| known(q.pid, |pid| pid.to_string()),
        order: |a, b| a.pid.cmp(&b.pid),
    },
    Column {
        title: "gpu",
        width: 6,
        rank: 9,
        left: false,
        cell: |q, _| known(q.gpu_id, |gpu| gpu.to_string()),
        order: |a, b| a.gpu_id.cmp(&b.gpu_id),
    },
    Column {
        title: "sched",
        width: 5,
        rank: 17,
        left: true,
        cell: |q, _| q.scheduler.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        order: |a, b| a.scheduler.cmp(&b.scheduler),
    },
    Column {
        title: "id",
        width: 4,
        rank: 11,
        left: false,
        cell: |q, _| known(q.queue_id, |id| id.to_string()),
        order: |a, b| a.queue_id.cmp(&b.queue_id),
    },
    Column {
        title: "type",
        width: 7,
        rank: 5,
        left: true,
        cell: |q, _| kind(q),
        order: |a, b| kind(a).cmp(&kind(b)),
    },
    Column {
        title: "disp/s",
        width: 7,
        rank: 1,
        left: false,
        cell: |q, _| rate(q.dispatches_per_s),
        order: busiest,
    },
    Column {
        title: "db/s",
        width: 7,
        rank: 6,
        left: false,
        cell: |q, _| rate(q.doorbells_per_s),
        order: |a, b| greatest(Some(a.doorbells_per_s), Some(b.doorbells_per_s)),
    },
    Column {
        title: "disp",
        width: 7,
        rank: 3,
        left: false,
        cell: |q, _| count(q.dispatches),
        order: |a, b| b.dispatches.cmp(&a.dispatches),
    },
    Column {
        title: "p/db",
        width: 5,
        rank: 12,
        left: false,
        cell: |q, _| known(q.packets_per_doorbell, |n| format!("{n:.1}")),
        order: |a, b| greatest(a.packets_per_doorbell, b.packets_per_doorbell),
    },
    Column {
        title: "write",
        width: 7,
        rank: 13,
        left: false,
        cell: |q, _| known(q.write_index, count),
        order: |a, b| greatest(a.write_index, b.write_index),
    },
    Column {
        title: "read",
        width: 7,
        rank: 14,
        left: false,
        cell: |q, _| known(q.read_index, count),
        order: |a, b| greatest(a.read_index, b.read_index),
    },
    Column {
        title: "depth",
        width: 11,
        rank: 2,
        left: false,
        cell: |q, _| depth(q),
        order: |a, b| greatest(a.depth, b.depth),
    },
    Column {
        title: "oldest",
        width: 6,
        rank: 7,
        left: false,
        cell: |q, _| q.oldest_age_ns.map_or_else(|| "-".to_owned(), duration),
        order: |a, b| greatest(a.oldest_age_ns, b.oldest_age_ns),
    },
    Column {
        title: "p50",
        width: 6,
        rank: 16,
        left: false,
        cell: |q, _| known(q.latency_ns.map(|(p50, _)| p50), duration),
        order: |a, b| greatest(a.latency_ns, b.latency_ns),
    },
    Column {
        title: "p99",
        width: 6,
        rank: 15,
        left: false,
        cell: |q, _| known(q.latency_ns.map(|(_, p99)| p99), duration),
        order: |a, b| greatest(a.latency_ns.map(|l| l.1), b.latency_ns.map(|l| l.1)),
    },
    Column {
        title: "path",
        width: 9,
        rank: 8,
        left: true,
        cell: |q, _| share(&q.by_path),
        order: |a, b| greatest(outside(&a.by_path), outside(&b.by_path)),
    },
    Column {
        title: "last minute",
        width: 0,
        rank: 10,
        left: true,
        cell: |q, width| sparkline(&q.history, usize::from(width)),
        order: busiest,
    },
];

/// Returns the rows in their order.
pub fn rows<'a>(top: &Top, picture: &'a Picture) -> Vec<&'a QueueRow> {
    picks::rows(&picture.queues, COLUMNS, top, |queue| {
        let pid = queue.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let stuck = if queue.stuck.is_some() { "stuck" } else { "" };
        format!("q{} {pid} {} {stuck}", queue.queue, kind(queue))
    })
}

/// Returns the style of a row. Stuck queues stand out without colour too; queues that have ended are dimmed.
pub fn style(queue: &QueueRow) -> Style {
    if queue.stuck.is_some() {
        Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD)
    } else if queue.ended {
        Style::new().add_modifier(Modifier::DIM)
    } else {
        Style::new()
    }
}

/// Orders stuck queues first, then by rate.
fn busiest(a: &QueueRow, b: &QueueRow) -> Ordering {
    let rate = |q: &QueueRow| q.dispatches_per_s + q.doorbells_per_s;
    b.stuck
        .is_some()
        .cmp(&a.stuck.is_some())
        .then(greatest(Some(rate(a)), Some(rate(b))))
}

fn kind(queue: &QueueRow) -> String {
    let kind = queue.kind.as_deref().unwrap_or(UNKNOWN);
    let short = kind.strip_prefix("compute-").unwrap_or(kind);
    // The runtime created the queue for itself.
    let mark = if queue.internal == Some(true) { " int" } else { "" };
    format!("{short}{mark}")
}

/// Formats the waiting packets and the ring's size, with an exclamation mark if the packets do not advance.
fn depth(queue: &QueueRow) -> String {
    let Some(depth) = queue.depth else {
        return if queue.kind.as_deref().is_none_or(|kind| kind == "compute-aql") {
            UNKNOWN.to_owned()
        } else {
            "-".to_owned()
        };
    };
    let mark = if queue.stuck.is_some() { "!" } else { "" };
    let ring = queue
        .ring_packets
        .map(|ring| format!("/{}", count(ring)))
        .unwrap_or_default();
    format!("{mark}{}{ring}", count(depth))
}

/// Formats the share by path; a path other than `doorbell` is named.
fn share(paths: &Share) -> String {
    let total = paths.total();
    if total == 0 {
        return "-".to_owned();
    }
    let percent = |n: u64| (n as f64 * 100.0 / total as f64).round();
    match outside(paths) {
        Some(0) => "100% db".to_owned(),
        _ if paths.unseen > 0 => format!("{}% uns", percent(paths.unseen).max(1.0)),
        _ if paths.ring > 0 => format!("{}% ring", percent(paths.ring).max(1.0)),
        _ => format!("{}% thk", percent(paths.thunk).max(1.0)),
    }
}

fn outside(paths: &Share) -> Option<u64> {
    Some(paths.ring + paths.thunk + paths.unseen)
}
