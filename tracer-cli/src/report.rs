//! `tracer report`: summarizes a recorded trace.

pub mod json;
pub mod runs;
pub mod text;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use tracer_core::tables::Table;
use tracer_core::{summary::Summary, tables::Fact};
use tracer_store::Trace;

use crate::{
    cli::{Format, Report},
    record::manifest,
};

/// Maximum number of runs of equal dispatches that the report shows, unless the user asks for all.
const MAX_RUNS: usize = 60;

/// Reads the trace and writes the report.
pub fn run(options: &Report) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    let mut summary = Summary::new(manifest::parse(&trace.manifest().capabilities));
    let mut runs = runs::Runs::default();
    for fact in &mut facts {
        let fact = fact?;
        summary.add(&fact);
        match &fact {
            Fact::Dispatch(dispatch) => runs.add(dispatch),
            Fact::DispatchRun(run) => runs.add_aggregated(run),
            _ => {}
        }
    }
    let mut warnings = trace.manifest().warnings.clone();
    warnings.extend(facts.damaged().iter().map(ToString::to_string));
    summary.set_unread(facts.damaged().iter().map(|damage| damage.table).collect());
    let report = summary.finish(trace.manifest().complete);
    let damaged = facts.damaged();
    for warning in &warnings {
        log::warn!("{warning}");
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let most = if options.all { usize::MAX } else { MAX_RUNS };
    let written = match options.format {
        Format::Json => json::write(&mut out, &trace, &report, &warnings, damaged),
        Format::Text => text::summary(&mut out, trace.manifest(), &report, damaged)
            .and_then(|()| text::details(&mut out, &report, &runs, most)),
    };
    // A reader that closes the pipe early (`| head`) is not a failure.
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => done.context("writing the report").map(|()| ExitCode::SUCCESS),
    }
}
