//! Options of `tracer export`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tracer_files::Mode;

use crate::units;

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Perfetto's protocol buffers, for ui.perfetto.dev and trace_processor
    Perfetto,
    /// JSON of Chrome's trace viewer, which many tools read
    Chrome,
    /// A JSON object per line: the metadata, then each row of each table
    Jsonl,
    /// A folder with a CSV file per table
    Csv,
    /// SQLite database in the schema of AMD's rocpd
    Rocpd,
    /// Folded stacks of launches, for flame graphs: needs a trace of `record --stacks`
    Folded,
}

/// `tracer export`
#[derive(Debug, Args)]
#[command(
    after_help = "docs/export.md describes what each format contains, and what it cannot say.\n\n\
    Examples:\n  tracer export app.trace --format perfetto -o app.pftrace\n  \
    tracer export app.trace --format jsonl -o - | jq .\n  \
    tracer export app.trace --format rocpd -o app.db --from 2s --to 2.5s\n  \
    tracer export app.trace --stacks -o app.folded && flamegraph.pl app.folded > app.svg"
)]
pub struct Export {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Output format
    #[arg(
        long,
        value_enum,
        required = false,
        required_unless_present = "stacks",
        default_value_if("stacks", "true", "folded")
    )]
    pub format: ExportFormat,
    /// Short for --format folded
    #[arg(long, conflicts_with = "format")]
    pub stacks: bool,
    /// The file to write, which replaces an existing one; for csv a folder, new or of an earlier export; - for standard output
    /// (chrome, folded, jsonl)
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Only what happened from this time on, since the start of the recording: 2s, 500ms
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub from: Option<Duration>,
    /// Only what happened before this time
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub to: Option<Duration>,
    /// Permissions of a folder that tracer writes, octal; files get the same without execute permission [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
}
