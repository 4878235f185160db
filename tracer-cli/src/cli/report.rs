//! Options of `tracer report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::report::text::{By, kernels::Sort};

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people
    Text,
    /// JSON (stable schema)
    Json,
    /// Markdown with whole names
    Markdown,
}

/// `tracer report`
#[derive(Debug, Args)]
pub struct Report {
    /// The trace to summarize
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// Print one kind of table instead of the headline and the usual tables
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Order of the kernels
    #[arg(long, value_enum, default_value = "count")]
    pub sort: Sort,
    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value = "10", conflicts_with = "all")]
    pub top: usize,
    /// Print all rows
    #[arg(long)]
    pub all: bool,
    /// Print all columns and whole names, however wide they are
    #[arg(long)]
    pub wide: bool,
}
