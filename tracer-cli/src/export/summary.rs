//! What the command says of its work.

use tracer_core::{tables::Table, units, words::count};
use tracer_export::About;

use super::Done;
use crate::{cli::Export, say::say};

/// Says what was written, what was left out, and what the export lacks.
pub fn say(options: &Export, about: &About, done: &Done) {
    let written = &done.written;
    let rows: Vec<String> = written
        .rows
        .iter()
        .map(|(table, rows)| {
            let rows = count(*rows, noun(*table)).to_string();
            match written
                .without_gpu_time
                .filter(|&n| *table == Table::Dispatches && n > 0)
            {
                Some(n) => format!("{rows} ({n} without a time of the GPU)"),
                None => rows,
            }
        })
        .collect();
    let rows = if rows.is_empty() {
        "no rows".to_owned()
    } else {
        rows.join(", ")
    };
    say!(
        "wrote {rows} to {} ({})",
        options.output.display(),
        units::bytes(done.bytes)
    );
    for (table, (rows, reason)) in &written.left_out {
        say!("left out {}: {reason}", count(*rows, noun(*table)));
    }
    if let Some(without) = written.without_stack {
        let of = |table| written.rows.get(&table).copied().unwrap_or(0);
        // A run is many dispatches: their number is not known here.
        if of(Table::DispatchRuns) == 0 {
            let all = of(Table::Dispatches);
            say!("stacks for {} of {}", all - without.min(all), count(all, "dispatch"));
        }
    }
    if written.unfinished > 0 {
        let calls = count(written.unfinished, "call");
        say!("closed {calls} whose end the trace does not have, and marked them as unfinished");
    }
    if !about.complete {
        log::warn!("the trace is incomplete: at most the last second is missing");
    }
    for (source, lost) in about.losses.iter().filter(|(_, lost)| **lost > 0) {
        log::warn!("{source} lost {}; the export lacks them", count(*lost, "event"));
    }
}

/// Returns what a row of a table is.
const fn noun(table: Table) -> &'static str {
    match table {
        Table::Processes => "process",
        Table::Queues => "queue",
        Table::Progress => "sample",
        Table::Ioctls => "ioctl",
        Table::Doorbells => "doorbell",
        Table::DoorbellRuns => "doorbell run",
        Table::Dispatches => "dispatch",
        Table::DispatchRuns => "dispatch run",
        Table::GpuTimes => "GPU time",
        Table::Proxies => "proxy",
        Table::Requests => "request",
        Table::Packets => "other packet",
        Table::CodeObjects => "code object",
        Table::Kernels => "kernel",
        Table::Copies => "copy",
        Table::RingJobs => "ring job",
        Table::DriverCalls => "driver call",
        Table::DriverEvents => "driver event",
        Table::ApiCalls => "API call",
        Table::ApiStats => "API count",
        Table::Libraries => "library",
        Table::Stacks => "stack",
        Table::Losses => "loss",
    }
}
