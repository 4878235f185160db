//! `tracer report`: summarizes a recorded trace.

pub mod json;
pub mod layout;
pub mod runs;
mod selection;
pub mod text;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use tracer_core::tables::Table;
use tracer_core::{
    analysis::{Analysis, Answers},
    summary::Summary,
    tables::Fact,
};
use tracer_store::{Trace, manifest::Manifest};

use crate::{
    cli::{Report, ReportFormat},
    record::manifest,
    say,
};
use layout::Layout;
use selection::Selection;
use text::{By, How, Read};

/// Reads the trace and writes the report.
pub fn run(options: &Report) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let selection = Selection::of(options, trace.manifest())?;
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    let mut summary = Summary::new(manifest::parse(&trace.manifest().capabilities));
    let mut analysis = Analysis::default();
    let mut runs = runs::Runs::default();
    let wants_runs = options.by == Some(By::Dispatch);
    for fact in &mut facts {
        let fact = fact?;
        summary.add(&fact);
        if selection.as_ref().is_some_and(|selection| !selection.has(&fact)) {
            continue;
        }
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
    let how = how(options, trace.manifest(), selection.as_ref());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match (options.format, options.by) {
        (ReportFormat::Json, _) => {
            let of = selection.as_ref();
            json::write(&mut out, &trace, &report, &answers, of, &warnings, damaged)
        }
        (_, Some(by)) => part(&mut out, selection.as_ref(), &answers, &how)
            .and_then(|()| text::by_one(&mut out, &read, &how, by))
            .and_then(|()| text::simulated(&mut out, trace.manifest(), how.layout)),
        (_, None) => text::summary(&mut out, trace.manifest(), &report, damaged, how.layout)
            .and_then(|()| part(&mut out, selection.as_ref(), &answers, &how))
            .and_then(|()| match &selection {
                Some(selection) => text::some(&mut out, &read, &how, selection.tables()),
                None => text::details(&mut out, &read, &how),
            }),
    };
    let written = written.and_then(|()| out.flush());
    let done = say::unless_gone(written.map_err(Into::into)).context("writing the report");
    done.map(|()| ExitCode::SUCCESS)
}

/// Writes which part of the recording the tables count.
fn part(out: &mut impl Write, selection: Option<&Selection>, answers: &Answers, how: &How) -> io::Result<()> {
    let Some(selection) = selection else { return Ok(()) };
    writeln!(out)?;
    let is_empty = answers.kernels.is_empty() && answers.functions.is_empty() && answers.other_dispatches == 0;
    let counted = if is_empty {
        "no row of the recording is in this part"
    } else {
        "the tables count this part only"
    };
    let text = format!("part       {}: {counted}", selection.text());
    how.layout.labelled(out, &text, 11)
}

/// Returns how the tables are written.
fn how(options: &Report, manifest: &Manifest, selection: Option<&Selection>) -> How {
    let layout = Layout::of(&io::stdout()).with_rows(if options.all { usize::MAX } else { options.top });
    let layout = match options.format {
        ReportFormat::Markdown => layout.markdown(),
        _ if options.wide => layout.wide(),
        _ => layout,
    };
    How {
        layout,
        sort: options.sort,
        wall_ns: selection.map_or_else(|| text::wall_ns(manifest), |part| part.wall_ns(text::wall_ns(manifest))),
    }
}
