//! The command line.

mod capture;
mod diff;
mod doctor;
mod event_log;
mod export;
mod import;
mod live;
#[cfg(feature = "otlp")]
mod otlp;
mod path;
mod query;
mod record;
mod report;
mod verify;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use capture::{Backend, Capture, Detail};
pub use diff::{Diff, DiffFormat};
pub use doctor::Doctor;
pub use event_log::{Log, LogFormat};
pub use export::{Export, ExportFormat};
pub use import::Import;
pub use live::{Serve, Top};
#[cfg(feature = "otlp")]
pub use otlp::Otlp;
pub use path::{Path, PathFormat, Place};
pub use query::{Described, Query, QueryFormat};
pub use record::Record;
pub use report::{Report, ReportFormat};
pub use verify::{VerdictFormat, Verify};

/// Show which path every kernel takes to an AMD GPU: a doorbell that a process rings from user space for its AQL queue, or
/// a job that the kernel driver submits on a ring.
#[derive(Debug, Parser)]
#[command(
    name = "tracer",
    version,
    max_term_width = 100,
    after_help = "`tracer COMMAND --help` describes each command. Capturing needs root; reading a trace does not.\n\n\
    Examples:\n  sudo tracer doctor\n  sudo tracer record -o app.trace ./app\n  tracer report app.trace\n  \
    tracer verify --policy mes-bypass app.trace"
)]
pub struct Cli {
    /// Increase verbosity (-v: actions, -vv: decisions)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What is logged.
    pub fn verbosity(&self) -> log::LevelFilter {
        match self.verbose {
            0 => log::LevelFilter::Warn,
            1 => log::LevelFilter::Info,
            _ => log::LevelFilter::Debug,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command, attach to processes, or watch the whole system, and record the path of every kernel
    Record(Record),
    /// Summarize a recorded trace
    Report(Report),
    /// Print the whole path of one packet, with the evidence for each step
    Path(Path),
    /// Print the events of a trace, one line each, in the order of their times
    Log(Log),
    /// Query the tables of one trace or many by SQL
    Query(Query),
    /// Compare traces before and after a change: kernels, queues, calls, ioctls, paths and layers
    Diff(Diff),
    /// Write a trace in the format of another tool: Perfetto, Chrome JSON, JSON lines, CSV, rocpd
    Export(Export),
    /// Make a trace of what another tool wrote: ftrace, trace-cmd, perf, strace, AMD's logs
    Import(Import),
    /// Show live activity per queue, or replay a trace
    Top(Top),
    /// Serve Prometheus metrics and a live page
    Serve(Serve),
    /// Check a trace, or a command that tracer records first, against a policy
    Verify(Verify),
    /// Check what tracer can capture on this machine, and how to fix what is missing
    Doctor(Doctor),
    /// Write man pages and completions below a folder such as /usr/local/share
    #[command(hide = true)]
    Generate {
        /// The folder
        #[arg(value_name = "DIR")]
        share: PathBuf,
    },
}
