//! `tracer query`: SQL over the tables of one trace or many.

mod rows;
mod schema;

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::Context;
use tracer_core::foreign::Terminal;
use tracer_query::Origin;
use tracer_store::Trace;

use crate::{cli::Query, report::layout::Layout, say, traces};

/// Runs the query and prints its rows; what the rows do not show goes to standard error.
pub fn run(options: &Query) -> anyhow::Result<ExitCode> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match (options.schema, &options.traces, &options.sql) {
        (Some(tables), ..) => schema::write(&mut out, tables, Layout::of(&io::stdout())).map_err(Into::into),
        (None, Some(traces), Some(sql)) => answer(&mut out, options, &open(traces)?, sql),
        _ => anyhow::bail!("give a trace and a query, or --schema"),
    };
    let written = written.and_then(|()| out.flush().context("writing the answer"));
    say::unless_gone(written).map(|()| ExitCode::SUCCESS)
}

fn answer(out: &mut impl Write, options: &Query, traces: &[Origin], sql: &str) -> anyhow::Result<()> {
    let mut rows = rows::Rows::new(options, Layout::of(&io::stdout()));
    let mut failed = None;
    let outcome = tracer_query::run(traces, sql, |batch| {
        failed = rows.take(out, batch).context("writing the answer").err();
        failed.is_none()
    })?;
    // A reader that is gone gets no notes, either.
    failed.map_or(Ok(()), Err)?;
    rows.finish(out)?;
    for note in outcome.notes {
        log::warn!("{}", Terminal(&note));
    }
    Ok(())
}

/// Opens the trace at a path, or all traces that fit a pattern.
fn open(pattern: &str) -> anyhow::Result<Vec<Origin>> {
    traces::paths(pattern)?.iter().map(|path| origin(path)).collect()
}

fn origin(path: &Path) -> anyhow::Result<Origin> {
    Ok(Origin {
        name: path.to_string_lossy().into_owned(),
        trace: Trace::open(path)?,
    })
}
