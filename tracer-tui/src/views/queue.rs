//! One queue in detail.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use tracer_core::foreign;
use tracer_core::live::{KernelRow, PacketRow, QueueRow};
use tracer_core::units::{count, duration, rate};

use super::kernels;
use crate::cells::{UNKNOWN, known, sparkline};
use crate::text::wrapped;

/// Draws the queue: its properties, whether it is stuck, what waits, and the last packets with the newest at the top.
pub fn draw(queue: &QueueRow, names: &[KernelRow], now: u64, selected: usize, area: Rect, buffer: &mut Buffer) {
    let facts = facts(queue);
    let facts = facts.iter().flat_map(|line| wrapped(line, area.width));
    let mut lines: Vec<(String, Style)> = facts.map(|line| (line, Style::new())).collect();
    if let Some(words) = stuck(queue) {
        let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
        lines.extend(wrapped(&words, area.width).into_iter().map(|line| (line, style)));
    }
    lines.push((timeline(queue, area.width), Style::new()));
    lines.push((
        format!("{:>12} {:>7} {:<15} {}", "index", "ago", "packet", "what"),
        Style::new().add_modifier(Modifier::BOLD),
    ));
    let packets = queue.packets.iter().rev().skip(selected);
    lines.extend(packets.map(|packet| (describe(packet, queue, names, now), Style::new())));
    for (line, (text, style)) in (area.y..area.bottom()).zip(lines) {
        buffer.set_stringn(area.x, line, text, usize::from(area.width), style);
    }
}

fn facts(queue: &QueueRow) -> Vec<String> {
    let path = &queue.by_path;
    let number = |n: Option<u64>| known(n, |n| n.to_string());
    vec![
        format!(
            "queue {} of process {} ({}), {}{}, gpu {} ({}, {}), kfd queue {}{}",
            queue.queue,
            known(queue.pid, |pid| pid.to_string()),
            foreign::line(queue.comm.as_deref().unwrap_or(UNKNOWN)),
            queue.kind.as_deref().unwrap_or(UNKNOWN),
            if queue.internal == Some(true) {
                " internal to the runtime"
            } else {
                ""
            },
            known(queue.gpu_id, |id| id.to_string()),
            queue.gpu.as_deref().unwrap_or(UNKNOWN),
            queue.scheduler.as_deref().unwrap_or(UNKNOWN),
            known(queue.queue_id, |id| id.to_string()),
            if queue.ended { ", ended" } else { "" },
        ),
        format!(
            "{} dispatches, {}/s; {} doorbells, {}/s; {} unread",
            number(queue.dispatches),
            known(queue.dispatches_per_s, rate),
            number(queue.doorbells),
            known(queue.doorbells_per_s, rate),
            number(queue.unread),
        ),
        format!(
            "paths: doorbell {}, ring {}, thunk {}, unseen {}",
            number(path.doorbell),
            number(path.ring),
            number(path.thunk),
            number(path.unseen)
        ),
        format!(
            "write {}, read {} (read {} ago); depth {} of {}; oldest {}",
            known(queue.write_index, |n| n.to_string()),
            known(queue.read_index, |n| n.to_string()),
            known(queue.looked_age_ns, duration),
            known(queue.depth, |n| n.to_string()),
            known(queue.ring_packets, |n| n.to_string()),
            queue.oldest_age_ns.map_or_else(|| "none".to_owned(), duration),
        ),
        format!(
            "reserve to doorbell: {}",
            queue.latency_ns.map_or_else(
                || "not watched".to_owned(),
                |(p50, p99)| format!("p50 {}, p99 {}", duration(p50), duration(p99))
            )
        ),
    ]
}

/// Describes a queue that does not advance, and the possible causes.
fn stuck(queue: &QueueRow) -> Option<String> {
    let stuck = queue.stuck?;
    let rung = stuck.last_doorbell_ns.map_or_else(String::new, |age| {
        format!(", the last doorbell was {} ago", duration(age))
    });
    Some(format!(
        "STUCK: {} packets wait and the read index has been {} for {}{rung}. A kernel that does not end, a barrier whose \
         signal nobody completes, or a queue that the scheduler does not run.",
        stuck.packets,
        stuck.read_index,
        duration(stuck.for_ns),
    ))
}

/// Describes the doorbells whose packets were not all taken, by age: the longest wait is on the left.
fn timeline(queue: &QueueRow, width: u16) -> String {
    const HEAD: &str = "last minute ";
    let room = usize::from(width).saturating_sub(HEAD.len());
    let mut line = format!("{HEAD}{}", sparkline(&queue.history, room.min(60)));
    if let (Some(&(oldest, _)), Some(&(newest, _))) = (queue.timeline.first(), queue.timeline.last()) {
        line = format!(
            "{} doorbells in flight, {} to {} old",
            queue.timeline.len(),
            duration(newest),
            duration(oldest)
        );
    }
    line
}

fn describe(packet: &PacketRow, queue: &QueueRow, names: &[KernelRow], now: u64) -> String {
    let index = if packet.count > 1 {
        format!("{}+{}", packet.index, packet.count - 1)
    } else {
        packet.index.to_string()
    };
    let what = match (packet.kernel_object, packet.grid, packet.workgroup) {
        (Some(object), Some(grid), Some(group)) => {
            let kernel = names
                .iter()
                .find(|kernel| kernel.kernel_object == object && Some(kernel.pid) == queue.pid);
            let name = kernel.map_or_else(|| format!("{object:#x}"), kernels::name);
            format!(
                "{name} {}/{}",
                sizes(&grid.map(u64::from)),
                sizes(&group.map(u64::from))
            )
        }
        _ => String::new(),
    };
    format!(
        "{index:>12} {:>7} {:<15} {what}",
        duration(now.saturating_sub(packet.time_ns)),
        packet.kind
    )
}

/// Formats sizes without trailing ones.
fn sizes(all: &[u64; 3]) -> String {
    let used = all.iter().rposition(|&n| n > 1).map_or(1, |last| last + 1);
    all[..used].iter().map(|&n| count(n)).collect::<Vec<_>>().join("x")
}
