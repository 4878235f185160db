//! Processes, GPUs, and what the kernel driver did: ioctls, rings, functions and trace events.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    io::{self, Write},
};

use tracer_core::{foreign::Terminal, summary::Report, tally::Stats, units::duration};

use super::super::layout::{Layout, Table, name, number, text};
use super::{dash, headline::listed};
use crate::units::known;

/// Writes the ioctls by name, the most time first.
pub fn ioctls(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("IOCTLS"),
        number("COUNT"),
        number("ERRORS"),
        number("TOTAL"),
        number("P50").spare(1),
        number("P99").spare(2),
        number("MAX").spare(3),
    ];
    let mut calls: Vec<_> = report.ioctls.by_name.iter().collect();
    calls.sort_by_key(|(_, calls)| Reverse(calls.ns.map(|ns| ns.total)));
    let mut table = Table::new(&columns);
    for (name, calls) in calls {
        table.row(timed(name, [calls.count, calls.errors], calls.ns));
    }
    table.write(out, layout)
}

/// Returns the row of a name: two counts, then total, median, 99th percentile and maximum of the times.
fn timed(name: &str, counts: [u64; 2], ns: Option<Stats>) -> Vec<String> {
    let times = match ns {
        Some(ns) => [ns.total, ns.p50, ns.p99, ns.max].map(duration),
        None => std::array::from_fn(|_| dash()),
    };
    let counts = counts.map(|n| n.to_string());
    let name = [Terminal(name).to_string()];
    name.into_iter().chain(counts).chain(times).collect()
}

/// Writes the rings of the kernel driver.
pub fn rings(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("RINGS"),
        text("DEVICE").spare(2),
        text("CLASS"),
        number("JOBS"),
        number("TRACED"),
        number("UNFINISHED").spare(3),
        number("QUEUED P50").spare(4),
        number("RUNNING P50").spare(1),
        text("REASONS").spare(5),
    ];
    let mut table = Table::new(&columns);
    let p50 = |stats: Option<Stats>| known(stats.map(|ns| duration(ns.p50)));
    for ring in &report.ring_jobs.rings {
        table.row(vec![
            Terminal(ring.ring.as_deref().unwrap_or("unknown")).to_string(),
            Terminal(ring.device.as_deref().unwrap_or("unknown")).to_string(),
            Terminal(&ring.class).to_string(),
            ring.jobs.to_string(),
            ring.traced.to_string(),
            ring.unfinished.to_string(),
            p50(ring.queued_ns),
            p50(ring.running_ns),
            listed(&ring.by_reason),
        ]);
    }
    table.write(out, layout)
}

/// Writes the calls of the driver's functions.
pub fn calls(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("KERNEL FUNCTIONS"),
        number("COUNT"),
        number("TRACED"),
        number("TOTAL").spare(3),
        number("P50"),
        number("P99").spare(1),
        number("MAX").spare(2),
    ];
    let mut table = Table::new(&columns);
    for (name, calls) in &report.driver_calls.by_function {
        table.row(timed(name, [calls.count, calls.traced], calls.ns));
    }
    table.write(out, layout)
}

/// Writes the driver's trace events. They come in addition to the rings' jobs and are not further jobs, as the heading says.
pub fn events(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("TRACE EVENTS (NOT JOBS)"),
        number("COUNT"),
        number("TRACED"),
        number("BYTES").spare(1),
    ];
    let mut table = Table::new(&columns);
    for (name, events) in &report.driver_events.by_event {
        table.row(vec![
            Terminal(name).to_string(),
            events.count.to_string(),
            known(events.traced),
            events.bytes.map_or_else(|| "not given".to_owned(), |n| n.to_string()),
        ]);
    }
    table.write(out, layout)
}

/// What the queues of a process or a GPU have together.
#[derive(Default)]
struct Sum {
    queues: u64,
    dispatches: u64,
    doorbells: u64,
    others: u64,
    unread: u64,
}

impl Sum {
    fn of<K: Ord>(report: &Report, key: impl Fn(&tracer_core::tables::Queue) -> K) -> Vec<(K, Self)> {
        let mut sums: BTreeMap<K, Self> = BTreeMap::new();
        for queue in &report.queues {
            let sum = sums.entry(key(queue)).or_default();
            sum.queues += 1;
            sum.dispatches = sum.dispatches.saturating_add(queue.dispatches);
            sum.doorbells = sum.doorbells.saturating_add(queue.doorbells);
            sum.others = sum.others.saturating_add(queue.other_packets);
            sum.unread = sum.unread.saturating_add(queue.unread);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| Reverse(sum.dispatches));
        sums
    }

    fn cells(&self) -> [String; 5] {
        [self.queues, self.dispatches, self.doorbells, self.others, self.unread].map(|n| n.to_string())
    }
}

/// Writes the processes that had queues.
pub fn processes(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        number("PID"),
        name("PROCESSES"),
        number("QUEUES"),
        number("DISPATCHES"),
        number("DOORBELLS").spare(1),
        number("OTHERS").spare(3),
        number("UNREAD").spare(2),
    ];
    let mut table = Table::new(&columns);
    for (pid, sum) in Sum::of(report, |queue| queue.pid) {
        let process = report.processes.iter().find(|process| process.pid == pid);
        let comm = process.map_or("unknown", |process| &*process.comm);
        let [queues, dispatches, doorbells, others, unread] = sum.cells();
        let comm = Terminal(comm).to_string();
        table.row(vec![
            pid.to_string(),
            comm,
            queues,
            dispatches,
            doorbells,
            others,
            unread,
        ]);
    }
    table.write(out, layout)
}

/// Writes the GPUs that had queues.
pub fn gpus(out: &mut impl Write, report: &Report, layout: Layout) -> io::Result<()> {
    let columns = [
        name("GPUS (KFD GPU ID)"),
        number("QUEUES"),
        number("DISPATCHES"),
        number("DOORBELLS").spare(1),
        number("OTHERS").spare(3),
        number("UNREAD").spare(2),
    ];
    let mut table = Table::new(&columns);
    for (gpu, sum) in Sum::of(report, |queue| queue.gpu_id) {
        let [queues, dispatches, doorbells, others, unread] = sum.cells();
        table.row(vec![known(gpu), queues, dispatches, doorbells, others, unread]);
    }
    table.write(out, layout)
}
