//! The diff for people: what was compared, then what differs, table by table.

mod headline;
mod lines;

use std::io::{self, Write};

use tracer_core::{
    diff::{self, Diff, TableDiff},
    foreign,
    words::{Named, count},
};

use crate::report::layout::{Layout, Style, Table, name, number, text};
use lines::Line;

/// How a diff is written.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Width and style.
    pub layout: Layout,
    /// Rows of a table.
    pub rows: usize,
    /// Whether rows that do not differ are written.
    pub equal: bool,
    /// Whether every figure of a row is written.
    pub every_figure: bool,
    /// Whether the diff has the table that the user asked for only.
    pub one_table: bool,
}

/// Writes the headline, the tables and the thresholds.
pub fn write(out: &mut impl Write, found: &Diff, how: How) -> io::Result<()> {
    headline::write(out, found, how.layout)?;
    let has_runs = found.before.len() + found.after.len() > 2;
    for table in &found.tables {
        one(out, table, has_runs, how)?;
    }
    thresholds(out, found, how.layout)
}

/// Writes a table, and what is not known of it.
fn one(out: &mut impl Write, table: &TableDiff, has_runs: bool, how: How) -> io::Result<()> {
    let (title, is_total) = (title(table.table), table.table == diff::Table::Total);
    let mut columns = vec![name(title)];
    if !is_total {
        columns.push(text("FIGURE"));
    }
    columns.extend([
        number("BEFORE"),
        number("AFTER"),
        number("CHANGE"),
        text("VERDICT").spare(1),
    ]);
    if has_runs {
        columns.extend([
            number("P").spare(2),
            text("RANGE BEFORE").spare(3),
            text("RANGE AFTER").spare(3),
        ]);
    }
    let lines = lines::of(table, how.equal, how.every_figure);
    let rows = lines.len();
    let is_markdown = how.layout.style == Style::Markdown;
    let mut cells = Table::new(&columns);
    for (at, line) in lines.iter().take(how.rows).flat_map(|row| row.iter().enumerate()) {
        let named = if at == 0 || is_markdown || is_total {
            foreign::line(line.name)
        } else {
            String::new()
        };
        cells.row(row(line, named, is_total, has_runs));
    }
    let layout = how.layout.with_rows(usize::MAX);
    if cells.is_empty() {
        if how.one_table {
            writeln!(out)?;
            layout.heading(out, title)?;
            layout.note(out, "No figure that both sides know differs.")?;
        }
    } else {
        cells.write(out, layout)?;
    }
    if rows > how.rows {
        let more = count((rows - how.rows) as u64, "more row");
        layout.note(out, &format!("{more}; --all shows them."))?;
    }
    let mut unknown = lines::unknown(table, how.equal || how.one_table);
    let others = unknown.split_off(unknown.len().min(if how.equal { usize::MAX } else { 3 }));
    if !unknown.is_empty() && rows == 0 && !how.one_table {
        writeln!(out)?;
        layout.heading(out, title)?;
    }
    for note in unknown {
        layout.note(out, &foreign::line(note))?;
    }
    match others.len() as u64 {
        0 => Ok(()),
        more => layout.note(out, &format!("{}; --all shows them.", count(more, "more reason"))),
    }
}

fn row(line: &Line<'_>, named: String, is_total: bool, has_runs: bool) -> Vec<String> {
    let mut cells = vec![if is_total { line.figure.figure.clone() } else { named }];
    if !is_total {
        cells.push(line.figure.figure.clone());
    }
    cells.extend([line.before(), line.after(), line.change(), line.verdict().to_owned()]);
    if has_runs {
        cells.extend([line.p(), line.range_before(), line.range_after()]);
    }
    cells
}

/// Writes what each threshold says, then the outcome of all.
fn thresholds(out: &mut impl Write, found: &Diff, layout: Layout) -> io::Result<()> {
    let Some(outcome) = found.outcome else { return Ok(()) };
    writeln!(out)?;
    layout.heading(out, "THRESHOLDS")?;
    for judged in &found.thresholds {
        let text = format!("{:<13} {}", judged.outcome.name(), foreign::line(&judged.threshold));
        layout.labelled(out, &text, 14)?;
        for why in &judged.why {
            layout.labelled(out, &format!("{:<13} {}", "", foreign::line(why)), 14)?;
        }
    }
    writeln!(out)?;
    layout.labelled(out, &format!("{:<13} of all thresholds", outcome.name()), 14)
}

fn title(table: diff::Table) -> &'static str {
    match table {
        diff::Table::Total => "TOTALS",
        diff::Table::Kernel => "KERNELS",
        diff::Table::Path => "PATHS",
        diff::Table::Queue => "QUEUES",
        diff::Table::Api => "API CALLS",
        diff::Table::Ioctl => "IOCTLS",
        diff::Table::Layer => "TIME BY LAYER",
        diff::Table::Copy => "COPIES",
    }
}
