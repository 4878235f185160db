//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Shows which path every kernel submitted to an AMD GPU takes: a doorbell stored from user space into an AQL queue, or
/// a job on a ring of the kernel driver.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub struct Cli {
    /// Say more of what is done (-v), and of what is decided (-vv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    pub fn verbosity(&self) -> log::LevelFilter {
        match self.verbose {
            0 => log::LevelFilter::Warn,
            1 => log::LevelFilter::Info,
            _ => log::LevelFilter::Debug,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command and record the path of every kernel that it submits
    Record(Record),
    /// Tell what a trace says
    Report(Report),
    /// Tell what record would capture on this machine, what it would miss, and how to mend that
    Doctor(Doctor),
}

/// How much is captured of each submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// Doorbells with the packets that they publish
    Dispatch,
    /// And every reserve of packets (advance of a write index)
    Full,
}

/// `tracer record`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: the command's own, 128 + N if signal N killed it; 124 if its kernels could not be seen,\n\
    125 if tracer failed, 126 if the command can't be run, 127 if it is not found.\n\n\
    Examples:\n  sudo tracer record ./app --its-own-options\n  sudo tracer record -o run-%pid%.trace --detail full -- ./app"
)]
pub struct Record {
    /// Where the trace goes; %pid%, %hostname% and %time% are filled in [default: the command's name with .trace]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace a trace that is there already
    #[arg(long)]
    pub overwrite: bool,
    /// How much to capture
    #[arg(long, value_enum, default_value = "dispatch")]
    pub detail: Detail,
    /// Don't trace the processes that the command makes
    #[arg(long)]
    pub no_follow: bool,
    /// Run the command as root, not as the user who called sudo
    #[arg(long)]
    pub as_root: bool,
    /// The command
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs: names and meaning are stable
    Json,
}

/// `tracer report`
#[derive(Debug, Args)]
pub struct Report {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Show every run of equal dispatches, not only the first ones
    #[arg(long)]
    pub all: bool,
}

/// `tracer doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "Loads every eBPF program, attaches it with nobody traced, measures uprobes in functions of its own, and takes\n\
    all of it out again.\n\n\
    Exit status: 0 if both doorbells and rings would be captured, 1 if not, 2 for a usage error.\n\n\
    Examples:\n  sudo tracer doctor\n  sudo tracer doctor --library /opt/rocm/lib/libhsa-runtime64.so.1 --json"
)]
pub struct Doctor {
    /// For programs: names and meaning are stable
    #[arg(long)]
    pub json: bool,
    /// Look at this HSA runtime, instead of those that a search finds (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub library: Vec<PathBuf>,
}
