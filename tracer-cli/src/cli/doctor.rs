//! Options of `tracer doctor`.

use std::path::PathBuf;

use clap::Args;

/// `tracer doctor`
#[derive(Debug, Args)]
#[command(
    after_help = "doctor loads and attaches every eBPF program without tracing a process, measures uprobes in functions of its \
    own, and removes everything again.\n\n\
    Exit status: 0 if tracer would capture both doorbells and rings, 1 if not, 2 for a usage error.\n\n\
    Examples:\n  sudo tracer doctor\n  sudo tracer doctor --library /opt/rocm/lib/libhsa-runtime64.so.1 --json"
)]
pub struct Doctor {
    /// Print JSON (stable schema)
    #[arg(long)]
    pub json: bool,
    /// Resume processes that a tracer left paused when it died, print the outcome for each, and exit
    ///
    /// Every recording does the same at its start.
    #[arg(long, conflicts_with_all = ["json", "library", "debuginfod"])]
    pub resume: bool,
    /// Check this HSA runtime instead of those that doctor finds; repeatable
    #[arg(long, value_name = "FILE")]
    pub library: Vec<PathBuf>,
    /// Fetch debug files of stripped runtimes from the servers in DEBUGINFOD_URLS; record finds them there later
    #[arg(long)]
    pub debuginfod: bool,
}
