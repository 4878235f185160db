//! `tracer report`: summarizes a recorded trace.

pub mod json;
pub mod layout;
pub mod runs;
pub mod text;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use tracer_core::tables::Table;
use tracer_core::{analysis::Analysis, summary::Summary, tables::Fact};
use tracer_store::{Trace, manifest::Manifest};

use crate::{
    cli::{Report, ReportFormat},
    record::manifest,
    say,
};
use layout::Layout;
use text::{By, How, Read};

/// Reads the trace and writes the report.
pub fn run(options: &Report) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    let mut summary = Summary::new(manifest::parse(&trace.manifest().capabilities));
    let mut analysis = Analysis::default();
    let mut runs = runs::Runs::default();
    let wants_runs = options.by == Some(By::Dispatch);
    for fact in &mut facts {
        let fact = fact?;
        summary.add(&fact);
        analysis.add(&fact);
        match &fact {
            Fact::Dispatch(dispatch) if wants_runs => runs.add(dispatch),
            Fact::DispatchRun(run) if wants_runs => runs.add_aggregated(run),
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
    let answers = analysis.finish();
    let read = Read {
        report: &report,
        answers: &answers,
        runs: &runs,
    };
    let how = how(options, trace.manifest());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match (options.format, options.by) {
        (ReportFormat::Json, _) => json::write(&mut out, &trace, &report, &answers, &warnings, damaged),
        (_, Some(by)) => text::by_one(&mut out, &read, &how, by)
            .and_then(|()| text::simulated(&mut out, trace.manifest(), how.layout)),
        (_, None) => text::summary(&mut out, trace.manifest(), &report, damaged, how.layout)
            .and_then(|()| text::details(&mut out, &read, &how)),
    };
    let written = written.and_then(|()| out.flush());
    let done = say::unless_gone(written.map_err(Into::into)).context("writing the report");
    done.map(|()| ExitCode::SUCCESS)
}

/// Returns how the tables are written.
fn how(options: &Report, manifest: &Manifest) -> How {
    let layout = Layout::of(&io::stdout()).with_rows(if options.all { usize::MAX } else { options.top });
    let layout = match options.format {
        ReportFormat::Markdown => layout.markdown(),
        _ if options.wide => layout.wide(),
        _ => layout,
    };
    How {
        layout,
        sort: options.sort,
        wall_ns: text::wall_ns(manifest),
    }
}
