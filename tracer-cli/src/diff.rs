//! `tracer diff`: compares recordings before and after a change.

mod read;
mod text;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use tracer_core::diff::{self, Run, Table};
use tracer_core::verify::Outcome;
use tracer_store::StoreError;

use crate::{
    cli::{Diff, DiffFormat},
    exit,
    report::layout::Layout,
    say, traces,
};

/// Compares the traces, and writes the result. The exit code says whether a threshold is exceeded.
pub fn run(options: &Diff) -> anyhow::Result<ExitCode> {
    let sides = [&options.before, &options.after].map(|pattern| chosen(pattern, options.runs));
    let (before, after) = match sides {
        [Ok(before), Ok(after)] => (before, after),
        [Err(error), _] | [_, Err(error)] => return Ok(misused(&error)),
    };
    let (before, after) = match read(&before).and_then(|before| Ok((before, read(&after)?))) {
        Ok(runs) => runs,
        Err(error) => match error.downcast_ref() {
            Some(StoreError::NotFound(_) | StoreError::NotATrace { .. }) => return Ok(misused(&error)),
            _ => return Err(error),
        },
    };
    let mut found = diff::diff(&before, &after, &options.fail_on, options.alpha);
    if let Some(by) = options.by {
        let wanted = Table::from(by);
        found.tables.retain(|table| table.table == wanted);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match options.format {
        DiffFormat::Json => say::json(&found).and_then(|json| out.write_all(json.as_bytes())),
        format => text::write(&mut out, &found, how(options, format)),
    };
    let written = written.and_then(|()| out.flush());
    say::unless_gone(written.map_err(Into::into)).context("writing the diff")?;
    Ok(ExitCode::from(match found.outcome {
        None | Some(Outcome::Pass | Outcome::Warn) => 0,
        Some(Outcome::Inconclusive) => exit::INCONCLUSIVE,
        Some(Outcome::Fail) => exit::FAILS,
    }))
}

/// Returns the traces of a side.
fn chosen(pattern: &str, runs: bool) -> anyhow::Result<Vec<PathBuf>> {
    let paths = traces::paths(pattern)?;
    anyhow::ensure!(
        runs || paths.len() == 1,
        "{pattern} fits {} traces; compare repeated runs with --runs, or name one trace",
        paths.len()
    );
    Ok(paths)
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    paths.iter().map(|path| read::run(path)).collect()
}

fn misused(error: &anyhow::Error) -> ExitCode {
    say::error(error);
    ExitCode::from(exit::USAGE)
}

fn how(options: &Diff, format: DiffFormat) -> text::How {
    let layout = Layout::of(&io::stdout());
    let layout = match format {
        DiffFormat::Markdown => layout.markdown(),
        _ if options.wide => layout.wide(),
        _ => layout,
    };
    text::How {
        layout,
        rows: if options.all { usize::MAX } else { options.top },
        equal: options.all,
        every_figure: options.wide,
        one_table: options.by.is_some(),
    }
}
