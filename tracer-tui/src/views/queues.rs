//! The view of all queues.

use std::cmp::Ordering;

use ratatui::style::{Color, Modifier, Style};
use tracer_core::live::{ByPath, Picture, QueueRow};
use tracer_core::units::{count, duration, rate};

use crate::{
    cells::{UNKNOWN, known, sparkline},
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// The initial sort column: stuck queues are at the top, then busy ones.
pub const FIRST: usize = 8;

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<QueueRow>] = columns! {
    "q" 4 0 right: |q, _| q.queue.to_string(), |a, b| a.queue.cmp(&b.queue);
    "process" 12 4 left: |q, _| q.comm.clone().unwrap_or_else(|| UNKNOWN.to_owned()), |a, b| a.comm.cmp(&b.comm);
    "pid" 7 8 right: |q, _| known(q.pid, |pid| pid.to_string()), |a, b| a.pid.cmp(&b.pid);
    "gpu" 7 7 left: |q, _| q.gpu.clone().unwrap_or_else(|| UNKNOWN.to_owned()), |a, b| a.gpu.cmp(&b.gpu);
    "gpu id" 6 14 right: |q, _| known(q.gpu_id, |gpu| gpu.to_string()), |a, b| a.gpu_id.cmp(&b.gpu_id);
    "sched" 5 19 left: |q, _| q.scheduler.clone().unwrap_or_else(|| UNKNOWN.to_owned()), |a, b| a.scheduler.cmp(&b.scheduler);
    "id" 4 13 right: |q, _| known(q.queue_id, |id| id.to_string()), |a, b| a.queue_id.cmp(&b.queue_id);
    "type" 8 5 left: |q, _| kind(q), |a, b| kind(a).cmp(&kind(b));
    "disp/s" 7 1 right: |q, _| known(q.dispatches_per_s, rate), busiest;
    "db/s" 6 10 right: |q, _| known(q.doorbells_per_s, rate), |a, b| greatest(a.doorbells_per_s, b.doorbells_per_s);
    "disp" 6 3 right: |q, _| known(q.dispatches, count), |a, b| b.dispatches.cmp(&a.dispatches);
    "p/db" 5 12 right: |q, _| known(q.packets_per_doorbell, |n| format!("{n:.1}")),
        |a, b| greatest(a.packets_per_doorbell, b.packets_per_doorbell);
    "write" 7 17 right: |q, _| known(q.write_index, count), |a, b| greatest(a.write_index, b.write_index);
    "read" 7 18 right: |q, _| known(q.read_index, count), |a, b| greatest(a.read_index, b.read_index);
    "depth" 7 2 right: |q, _| depth(q), |a, b| greatest(a.depth, b.depth);
    "oldest" 7 9 right: |q, _| q.oldest_age_ns.map_or_else(|| "-".to_owned(), duration),
        |a, b| greatest(a.oldest_age_ns, b.oldest_age_ns);
    "p50" 7 16 right: |q, _| known(q.latency_ns.map(|(p50, _)| p50), duration), |a, b| greatest(a.latency_ns, b.latency_ns);
    "p99" 7 15 right: |q, _| known(q.latency_ns.map(|(_, p99)| p99), duration),
        |a, b| greatest(a.latency_ns.map(|l| l.1), b.latency_ns.map(|l| l.1));
    "path" 10 6 left: |q, _| share(&q.by_path), |a, b| greatest(outside(&a.by_path), outside(&b.by_path));
    "last minute" 0 11 left: |q, width| sparkline(&q.history, usize::from(width)), busiest;
};

/// Returns the rows in their order.
pub fn rows<'a>(choice: Choice<'_>, picture: &'a Picture) -> Vec<&'a QueueRow> {
    rows::of(&picture.queues, COLUMNS, choice, |queue| {
        let pid = queue.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let stuck = if queue.stuck.is_some() { "stuck" } else { "" };
        let [comm, gpu] = [&queue.comm, &queue.gpu].map(|name| name.as_deref().unwrap_or_default());
        format!("q{} {pid} {comm} {gpu} {} {stuck}", queue.queue, kind(queue))
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
    let rate = |q: &QueueRow| q.dispatches_per_s.unwrap_or(0.0) + q.doorbells_per_s.unwrap_or(0.0);
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

/// Formats the share by path; a path other than `doorbell` is named. A question mark behind the share means that there may be more
/// on paths that are not known. The rings of the driver do not concern a user queue.
fn share(paths: &ByPath) -> String {
    let seen = paths.seen();
    let open = paths.thunk.is_none() || paths.unseen.is_none();
    if seen == 0 {
        return if paths.doorbell.is_some() && !open {
            "-"
        } else {
            UNKNOWN
        }
        .to_owned();
    }
    let mark = if open { " ?" } else { "" };
    let percent = |n: u64| (n as f64 * 100.0 / seen as f64).round().max(1.0);
    let named = [(paths.unseen, "uns"), (paths.ring, "ring"), (paths.thunk, "thk")];
    let used = named
        .into_iter()
        .find_map(|(n, name)| Some((n.filter(|&n| n > 0)?, name)));
    match used {
        None => format!("100% db{mark}"),
        Some((n, name)) => format!("{}% {name}", percent(n)),
    }
}

fn outside(paths: &ByPath) -> Option<u64> {
    Some(paths.seen() - paths.doorbell.unwrap_or(0))
}
