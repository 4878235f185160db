//! The queues, and the tools that intercept them.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    io::{self, Write},
};

use tracer_core::{
    analysis::{Answers, QueueUse},
    foreign::Terminal,
    losses,
    summary::Report,
    tables::{Queue, QueueOrigin},
    units::duration,
    words::Named,
};

use super::super::layout::{Layout, Table, number, text};
use super::{between, dash, in_flight, percent};
use crate::units::known;

/// Writes what programs requested on queues that a tool intercepts; nothing if no such queue is known.
pub fn requested(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let requested = &report.requested;
    let mut losses = report.losses.by_source.keys();
    if requested.proxies.is_none() && losses.any(|source| losses::is_of_proxies(source)) {
        return writeln!(
            out,
            "requested  unknown: tracer could not read everywhere whether a tool intercepts queues"
        );
    }
    let Some(proxies) = requested.proxies.filter(|&n| n > 0) else {
        return Ok(());
    };
    writeln!(
        out,
        "requested  {} dispatches and {} other packets by {} doorbells, on {proxies} queues that a tool intercepts; the \
         lines above count what the tool published",
        known(requested.dispatches),
        known(requested.other_packets),
        known(requested.doorbells)
    )
}

/// Writes each queue with its numbers, the most dispatches first.
pub fn table(out: &mut impl Write, report: &Report, answers: &Answers, layout: Layout) -> io::Result<()> {
    let processes: BTreeSet<u32> = report.queues.iter().map(|queue| queue.pid).collect();
    // The process says nothing where there is only one.
    let pid = match processes.len() {
        0 | 1 => number("PID").spare(9),
        _ => number("PID"),
    };
    let columns = [
        number("QUEUE"),
        pid,
        number("KFD ID").spare(2),
        text("TYPE"),
        text("MADE BY").spare(3),
        number("DISPATCHES"),
        number("DOORBELLS").spare(1),
        number("BARRIERS").spare(2),
        number("WAIT FOR OTHERS").spare(8),
        number("REDUNDANT").spare(8),
        number("DEPTH").spare(4),
        number("IN FLIGHT").spare(4),
        number("STREAMS").spare(3),
        number("OTHERS").spare(10),
        number("UNREAD").spare(4),
        number("UNSEEN").spare(5),
        number("PENDING").spare(6),
        number("EMPTY").spare(7),
        text("CREATED").spare(8),
        text("RING IN").spare(9),
        number("GPU").spare(9),
        number("UNCLAIMED").spare(11),
    ];
    let mut queues: Vec<&Queue> = report.queues.iter().collect();
    queues.sort_by_key(|queue| (Reverse(queue.dispatches), Reverse(queue.published), queue.queue));
    let mut table = Table::new(&columns);
    for q in queues {
        let used = answers.queues.iter().find(|used| used.queue == q.queue);
        let created = match (q.origin, q.create_enter_ns) {
            (QueueOrigin::Created, Some(enter)) => format!("ioctl, {}", duration(q.created_ns.saturating_sub(enter))),
            (QueueOrigin::Logged, _) => "by its log".to_owned(),
            _ => "before trace".to_owned(),
        };
        table.row(vec![
            q.queue.to_string(),
            q.pid.to_string(),
            known(q.queue_id),
            Terminal(&q.kind).to_string(),
            maker(q).to_owned(),
            dispatches(q),
            // A log has packets, and no doorbells.
            known((q.origin != QueueOrigin::Logged).then_some(q.doorbells)),
            used.map_or(0, |used| used.barriers).to_string(),
            of_signals(used, |used| between(used.waits_elsewhere, used.waits_elsewhere_at_most)),
            of_signals(used, |used| used.waits_own.saturating_add(used.repeated).to_string()),
            q.max_depth.to_string(),
            held(answers, q.queue),
            used.map_or_else(dash, |used| used.streams.len().to_string()),
            q.other_packets.to_string(),
            q.unread.to_string(),
            known(q.unseen),
            q.pending.to_string(),
            used.filter(|used| used.doorbells > 0)
                .map_or_else(dash, |used| percent(used.found_empty, used.doorbells)),
            created,
            known(q.ring_memory.map(Named::name)),
            known(q.gpu_id),
            q.unclaimed.map_or_else(dash, |n| n.to_string()),
        ]);
    }
    table.write(out, layout)
}

/// Formats what the signals of a queue's barriers show; old traces do not have them.
fn of_signals(used: Option<&QueueUse>, format: impl FnOnce(&QueueUse) -> String) -> String {
    used.filter(|used| used.signals_unknown == 0)
        .map_or_else(|| known(None::<u64>), format)
}

/// Formats the share of the time in which a queue held packets that the GPU had not taken.
fn held(answers: &Answers, queue: u32) -> String {
    let times = answers.in_flight.as_ref();
    let held = times.and_then(|times| Some((*times.queues.get(&queue)?, times.phase_ns)));
    held.map_or_else(dash, |(held, phase_ns)| in_flight::share(held, phase_ns))
}

/// Returns the dispatches of a queue. Those of a queue whose commands tracer cannot read are unknown, and an SDMA queue takes none.
fn dispatches(queue: &Queue) -> String {
    match () {
        () if queue.is_sdma() => dash(),
        () if queue.is_opaque() && queue.dispatches == 0 => known(None::<u64>),
        () => queue.dispatches.to_string(),
    }
}

/// Returns what created a queue.
fn maker(queue: &Queue) -> &'static str {
    match queue.internal {
        Some(true) => "runtime",
        Some(false) => "program",
        None if queue.is_aql() => "unknown",
        None => "-",
    }
}
