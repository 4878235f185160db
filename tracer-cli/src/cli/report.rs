//! Options of `tracer report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use regex::Regex;
use tracer_files::Mode;

use crate::report::text::{By, kernels::Sort};
use crate::units;

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people
    Text,
    /// JSON (stable schema: docs/report.schema.json)
    Json,
    /// Markdown with whole names
    Markdown,
    /// One HTML page with plots, which needs no network
    Html,
}

/// `tracer report`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tracer report app.trace\n  tracer report app.trace --by kernel --all --wide\n  \
    tracer report app.trace --format html -o app.html\n  tracer report app.trace --format html --from 2s --to 2.5s -o part.html"
)]
pub struct Report {
    /// The trace to summarize
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// The file to write, which replaces an existing one; - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one kind of table instead of the headline and the usual tables
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Order of the kernels
    #[arg(long, value_enum, default_value = "count")]
    pub sort: Sort,
    /// Rows of each table; of an HTML page, those that are visible at once
    #[arg(long, value_name = "ROWS", default_value = "10", conflicts_with = "all")]
    pub top: usize,
    /// Print all rows
    #[arg(long)]
    pub all: bool,
    /// Only what this process did
    #[arg(long, value_name = "PID", help_heading = "Part of the recording")]
    pub pid: Option<u32>,
    /// Only kernels whose names match this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Part of the recording")]
    pub kernel: Option<Regex>,
    /// Only what happened from this time on, since the start of the recording: 2s, 500ms
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = "Part of the recording")]
    pub from: Option<Duration>,
    /// Only what happened before this time
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = "Part of the recording")]
    pub to: Option<Duration>,
    /// Print all columns and whole names, however wide they are
    #[arg(long)]
    pub wide: bool,
    /// Do not pass text that is longer than the terminal to TRACER_PAGER, PAGER or less
    #[arg(long)]
    pub no_pager: bool,
    /// Permissions of the file, as those of a folder, octal; the file gets them without execute permission [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
}
