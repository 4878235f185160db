//! `tracer log`: prints the rows of a trace, one line each, in the order of their times. `record --log` prints them at once.

pub mod live;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tracer_core::{
    foreign::Terminal,
    tables::{Record, Table},
};
use tracer_export::jsonl;
use tracer_store::Trace;

use crate::{
    cli::{Log, LogFormat},
    say, window,
};

/// Returns the parser of names of tables.
pub fn table_parser() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(Table::ALL.map(Table::name))
}

/// The columns that a line of text has, after time, process and thread. Tables without any are left out unless they are requested.
const fn columns(table: Table) -> &'static [&'static str] {
    match table {
        Table::Processes => &["comm", "parent"],
        Table::Queues => &[
            "queue",
            "queue_id",
            "kind",
            "gpu_id",
            "origin",
            "ring_base",
            "write_pointer",
        ],
        Table::Ioctls => &["name", "ret", "args"],
        Table::Doorbells => &["queue", "value", "published", "read_index", "write_index"],
        Table::DoorbellRuns => &["queue", "count", "first_index", "last_index"],
        Table::Dispatches => &[
            "queue",
            "index",
            "kernel",
            "path",
            "grid_x",
            "grid_y",
            "grid_z",
            "workgroup_x",
            "header",
            "kernarg",
            "completion_signal",
        ],
        Table::DispatchRuns => &["queue", "first_index", "last_index", "kernel", "path"],
        Table::Packets => &["queue", "index", "count", "kind", "path", "unread", "header"],
        Table::Copies => &["queue", "by", "op", "bytes", "direction", "path"],
        Table::RingJobs => &["ring", "class", "context", "seqno", "job_id", "reason", "traced"],
        Table::DriverCalls => &["function", "ret", "queue_id", "queue_type", "owner"],
        Table::DriverEvents => &["event", "ring", "context", "seqno", "bytes"],
        Table::ApiCalls => &["function", "ret", "stream", "bytes", "dispatches", "copies"],
        Table::Requests => &["proxy", "index", "kernel"],
        Table::Losses => &["source", "count"],
        Table::CodeObjects => &["code_object", "uri", "target", "kernels"],
        Table::Libraries => &["path"],
        Table::Stacks => &["complete"],
        _ => &[],
    }
}

/// Reads the trace and writes the lines.
pub fn run(options: &Log) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut out, &trace, options).and_then(|()| Ok(out.flush()?));
    let done = say::unless_gone(written).context("writing the log");
    done.map(|()| ExitCode::SUCCESS)
}

fn write(out: &mut impl Write, trace: &Trace, options: &Log) -> anyhow::Result<()> {
    let is_wanted = |table: &Table| match options.tables.is_empty() {
        true => !columns(*table).is_empty(),
        false => options.tables.iter().any(|name| name == table.name()),
    };
    let tables: Vec<Table> = Table::ALL.into_iter().filter(is_wanted).collect();
    let zero = trace.manifest().started.monotonic_ns;
    let window = window::of(trace.manifest(), options.from, options.to);
    let mut facts = trace.facts(&tables)?.skip_damaged();
    for fact in &mut facts {
        let fact = fact?;
        let time_ns = fact.time_ns();
        if window.is_over(time_ns) {
            break;
        }
        let record = Record::of(&fact);
        if !window.has(time_ns) || !is_of(&record, options) {
            continue;
        }
        match options.format {
            LogFormat::Jsonl => writeln!(out, "{}", jsonl::line(&record)?)?,
            LogFormat::Text => line(out, &record, time_ns, zero)?,
        }
    }
    // Standard output has rows only.
    if let Some(sign) = &trace.manifest().simulated {
        log::warn!("simulated: {sign}: nothing here is from a real GPU");
    }
    for damage in facts.damaged() {
        log::warn!("{damage}");
    }
    Ok(())
}

/// Returns whether a row is of the process, the queue and the kernel that the user asked for.
fn is_of(record: &Record, options: &Log) -> bool {
    let is = |column, wanted: Option<u32>| wanted.is_none_or(|id| record.number(column) == Some(id.into()));
    let kernel = options.kernel.as_ref();
    is("pid", options.pid)
        && is("queue", options.queue)
        && kernel.is_none_or(|name| record.text("kernel").is_some_and(|kernel| kernel.contains(name)))
}

/// Writes time since the start of the recording, process and thread, table, and columns with their names.
fn line(out: &mut impl Write, record: &Record, time_ns: u64, zero: u64) -> io::Result<()> {
    let (sign, since) = match time_ns.checked_sub(zero) {
        Some(since) => ("", since),
        None => ("-", zero - time_ns),
    };
    let time = format!("{sign}{}.{:09}", since / 1_000_000_000, since % 1_000_000_000);
    let id = |column| record.text(column).unwrap_or_else(|| "-".to_owned());
    write!(
        out,
        "{time:>14} {:>7} {:>7} {:<13}",
        id("pid"),
        id("tid"),
        record.table().name()
    )?;
    let shown = columns(record.table());
    let all: Vec<&str> = record.table().columns().iter().map(|column| column.name).collect();
    for column in if shown.is_empty() { &all } else { shown } {
        if let Some(value) = record.text(column) {
            write!(out, " {column}={}", Terminal(&value))?;
        }
    }
    writeln!(out)
}
