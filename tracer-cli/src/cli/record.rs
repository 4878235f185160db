//! Options of `tracer record`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use tracer_files::Mode;

use super::capture::{Capture, ROW_MEMORY_MIB};
use crate::units;

/// `tracer record`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: that of the command; 128 + N if signal N killed it. 124 if the command exited with 0 and a process \
    created a compute queue but has no doorbell probe, 125 if tracer failed, 126 if the command cannot be executed, 127 if it does \
    not exist. With --pid or --all: 0, 124 or 125.\n\n\
    Examples:\n  sudo tracer record ./app --its-own-options\n  sudo tracer record -o run-%pid%.trace --detail full -- ./app\n  \
    sudo tracer record -p $(pgrep -n app) --duration 10s\n  sudo tracer record -a\n  \
    tracer record --script --library libhsa-runtime64.so.1 > capture.sh",
    group = ArgGroup::new("running").args(["pid", "all"])
)]
pub struct Record {
    /// Write the trace to this folder; tracer replaces %pid%, %hostname% and %time% [default: COMMAND.trace; with --all
    /// system-%time%.trace]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an existing trace
    #[arg(long)]
    pub overwrite: bool,
    /// Permissions of the trace's folders, octal; files get the same without execute permission [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
    /// Memory for rows that wait for the disk; beyond it, tracer counts dispatches and doorbells in runs instead of storing a
    /// row for each; 0 always counts in runs
    #[arg(long, value_name = "MIB", default_value_t = ROW_MEMORY_MIB, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub row_memory: u32,
    #[command(flatten)]
    pub capture: Capture,
    /// Also print each event to standard error when tracer has it, as `tracer log` prints a trace
    #[arg(long)]
    pub log: bool,
    /// Stop recording after this time: 10, 10s, 500ms, 5m, 1h; with --pid or --all
    #[arg(long, value_name = "TIME", requires = "running", conflicts_with = "command", value_parser = units::time)]
    pub duration: Option<Duration>,
    /// Instead of recording, print a shell script that captures by ftrace on a machine without tracer; `tracer import` reads what it
    /// writes
    #[arg(long, requires = "library", conflicts_with_all = ["command", "running", "output", "log", "duration"])]
    pub script: bool,
    /// With --script, the HSA runtime of that machine: a copy of its libhsa-runtime64.so.1
    #[arg(long, value_name = "FILE", requires = "script")]
    pub library: Option<PathBuf>,
    /// The command to run, with its arguments
    #[arg(
        required_unless_present_any = ["pid", "all", "script"],
        conflicts_with = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub command: Vec<OsString>,
}
