//! Options of `tracer log`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::{event_log, units};

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people
    Text,
    /// A JSON object per line, with the table and all columns (docs/events.md)
    Jsonl,
}

/// `tracer log`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tracer log app.trace --queue 3\n  tracer log app.trace --table dispatches,ioctls --from 2s --to 2.5s\n  \
                  tracer log app.trace --format jsonl > app.jsonl"
)]
pub struct Log {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: LogFormat,
    /// Only rows of these tables [default: all but samples and counters]
    #[arg(long = "table", value_name = "TABLE", value_delimiter = ',', value_parser = event_log::table_parser())]
    pub tables: Vec<String>,
    /// Only rows of this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Only rows of this queue of the trace
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<u32>,
    /// Only rows of kernels with this text in their names
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Only rows from this time on, since the start of the recording: 2s, 500ms
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub from: Option<Duration>,
    /// Only rows before this time
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub to: Option<Duration>,
}
