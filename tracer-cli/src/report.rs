//! `tracer report`: summarizes a recorded trace.

mod html;
pub mod json;
pub mod layout;
pub mod runs;
mod selection;
pub mod text;

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, bail};
use tracer_core::tables::Table;
use tracer_core::{
    analysis::{Analysis, Answers},
    plots::Figures,
    summary::{self, Summary},
    tables::Fact,
    units::bytes,
};
use tracer_store::{Damage, Trace, manifest::Manifest};

use crate::{
    cli::{Report, ReportFormat},
    pager,
    record::{manifest, output},
    say,
};
use layout::{Layout, Style};
use selection::Selection;
use text::{By, How, Read};

/// What was read from the trace.
struct Counted {
    trace: Trace,
    selection: Option<Selection>,
    report: summary::Report,
    answers: Answers,
    runs: runs::Runs,
    /// What the plots of a page show; `None` for the other formats.
    figures: Option<Figures>,
    warnings: Vec<String>,
    damage: Vec<Damage>,
}

/// Reads the trace and writes the report.
pub fn run(options: &Report) -> anyhow::Result<ExitCode> {
    let file = options.output.as_deref().filter(|path| *path != Path::new("-"));
    if options.format == ReportFormat::Html {
        require_page(options)?;
    }
    let counted = read(options)?;
    for warning in &counted.warnings {
        log::warn!("{warning}");
    }
    // Tables are short, or the user asked for all of their rows.
    let mut content = Vec::new();
    write(&mut content, options, &counted)?;
    if let Some(path) = file {
        let owner = output::owner(false)?;
        let written = tracer_files::write(&owner, path, options.mode, &content);
        written.with_context(|| format!("cannot write the report to {}", path.display()))?;
        let name = tracer_core::foreign::line(path.display());
        say::line(format_args!("wrote {name}, {}", bytes(content.len() as u64)));
        return Ok(ExitCode::SUCCESS);
    }
    let is_text = options.format == ReportFormat::Text;
    let printed = pager::print(&content, is_text && !options.no_pager);
    printed.context("writing the report").map(|()| ExitCode::SUCCESS)
}

/// Checks what a page cannot be.
fn require_page(options: &Report) -> anyhow::Result<()> {
    if options.by.is_some() {
        bail!("--by chooses a table of the text report; a page has all tables: leave out --by");
    }
    if options.output.is_none() && io::stdout().is_terminal() {
        bail!("a page is not for a terminal; name a file with -o report.html");
    }
    Ok(())
}

fn read(options: &Report) -> anyhow::Result<Counted> {
    let trace = Trace::open(&options.trace)?;
    let selection = Selection::of(options, trace.manifest())?;
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    let mut summary = Summary::new(manifest::parse(&trace.manifest().capabilities));
    let mut analysis = Analysis::with_slots(trace.manifest().compute_queues());
    let mut runs = runs::Runs::default();
    let wants_runs = options.by == Some(By::Dispatch);
    let is_page = options.format == ReportFormat::Html;
    let mut plots = is_page.then(|| html::Plotted::new(trace.manifest(), selection.as_ref()));
    while let Some(fact) = facts.next_row() {
        let fact = fact?;
        summary.add(fact);
        if selection.as_ref().is_some_and(|selection| !selection.has(fact)) {
            continue;
        }
        let launch_ns = analysis.add(fact);
        if let Some(plots) = &mut plots {
            plots.add(fact, launch_ns);
        }
        match fact {
            Fact::Dispatch(dispatch) if wants_runs => runs.add(dispatch),
            Fact::DispatchRun(run) if wants_runs => runs.add_aggregated(run),
            _ => {}
        }
    }
    let damage = facts.damaged().to_vec();
    let mut warnings = trace.manifest().warnings.clone();
    warnings.extend(damage.iter().map(ToString::to_string));
    summary.set_unread(damage.iter().map(|damage| damage.table).collect());
    let report = summary.finish(trace.manifest().complete);
    let mut answers = analysis.finish();
    if selection.is_some() {
        // The rows of queues say how the whole recording ended.
        answers.in_flight = None;
    }
    Ok(Counted {
        trace,
        selection,
        report,
        answers,
        runs,
        figures: plots.map(html::Plotted::finish),
        warnings,
        damage,
    })
}

fn write(out: &mut impl Write, options: &Report, counted: &Counted) -> anyhow::Result<()> {
    let manifest = counted.trace.manifest();
    let selection = counted.selection.as_ref();
    let (report, answers, damage) = (&counted.report, &counted.answers, &counted.damage[..]);
    let read = Read {
        report,
        answers,
        runs: &counted.runs,
    };
    let how = how(options, manifest, selection);
    if let Some(figures) = &counted.figures {
        return html::write(out, options, counted, figures, &how);
    }
    let written = match (options.format, options.by) {
        (ReportFormat::Json, _) => json::write(
            out,
            &counted.trace,
            report,
            answers,
            selection,
            &counted.warnings,
            damage,
        ),
        (_, Some(by)) => part(out, selection, answers, &how)
            .and_then(|()| one(out, &read, &how, by, counted))
            .and_then(|()| text::simulated(out, manifest, how.layout)),
        (_, None) => text::summary(out, manifest, report, damage, how.layout)
            .and_then(|()| text::in_flight::lines(out, answers, how.layout))
            .and_then(|()| part(out, selection, answers, &how))
            .and_then(|()| match selection {
                Some(selection) => text::some(out, &read, &how, selection.tables()),
                None => text::details(out, &read, &how),
            }),
    };
    Ok(written?)
}

/// Writes one table, or why it has no rows.
fn one(out: &mut impl Write, read: &Read<'_>, how: &How, by: By, counted: &Counted) -> io::Result<()> {
    let mut table = Vec::new();
    text::by_one(&mut table, read, how, by)?;
    if table.is_empty() {
        let watched = manifest::parse(&counted.trace.manifest().capabilities);
        let is_whole = counted.damage.is_empty() && read.report.complete && read.report.losses.total == Some(0);
        return text::nothing::rows(out, by, watched, is_whole, how.layout);
    }
    out.write_all(&table)
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
    let line = format!("part       {}: {counted}", selection.text());
    how.layout.labelled(out, &line, text::LABEL)
}

/// Returns how the tables are written.
fn how(options: &Report, manifest: &Manifest, selection: Option<&Selection>) -> How {
    let layout = Layout::of(&io::stdout()).with_rows(if options.all { usize::MAX } else { options.top });
    let layout = match options.output {
        // A file is no terminal.
        Some(_) if layout.style == Style::Bold => Layout {
            style: Style::Plain,
            ..layout
        },
        _ => layout,
    };
    let layout = match options.format {
        ReportFormat::Markdown => layout.markdown(),
        ReportFormat::Html => html::layout(layout, options.all),
        _ if options.wide => layout.wide(),
        _ => layout,
    };
    How {
        layout,
        sort: options.sort,
        hit_ns: manifest.hit_ns(),
        wall_ns: selection.map_or_else(|| text::wall_ns(manifest), |part| part.wall_ns(text::wall_ns(manifest))),
    }
}
