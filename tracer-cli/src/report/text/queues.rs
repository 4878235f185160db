//! The queues, and the tools that intercept them.

use std::io::{self, Write};

use tracer_core::{
    foreign::Terminal,
    losses,
    summary::Report,
    tables::{Queue, QueueOrigin},
    units::duration,
};

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

/// Writes each queue with its numbers.
pub fn table(out: &mut impl Write, queues: &[Queue]) -> io::Result<()> {
    writeln!(
        out,
        "\nqueue  pid      kfd id  gpu_id   type         made by  created by      doorbells  dispatches  others  unread  pending  unclaimed"
    )?;
    for q in queues {
        let created = match (q.origin, q.create_enter_ns) {
            (QueueOrigin::Created, Some(enter)) => format!("ioctl, {}", duration(q.created_ns.saturating_sub(enter))),
            _ => "before trace".to_owned(),
        };
        writeln!(
            out,
            "{:<6} {:<8} {:<7} {:<8} {:<12} {:<8} {:<15} {:>9}  {:>10}  {:>6}  {:>6}  {:>7}  {:>9}",
            q.queue,
            q.pid,
            known(q.queue_id),
            known(q.gpu_id),
            Terminal(&q.kind),
            maker(q),
            created,
            q.doorbells,
            q.dispatches,
            q.other_packets,
            q.unread,
            q.pending,
            q.unclaimed.map_or_else(|| "-".to_owned(), |n| n.to_string())
        )?;
    }
    Ok(())
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
