//! Options of `tracer report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    Text,
    /// JSON (stable schema)
    Json,
}

/// `tracer report`
#[derive(Debug, Args)]
pub struct Report {
    /// The trace to summarize
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Print every run of equal dispatches instead of the first ones only
    #[arg(long)]
    pub all: bool,
}
