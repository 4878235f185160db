//! Options of `tracer import`.

use std::path::PathBuf;

use clap::Args;
use tracer_files::Mode;

/// `tracer import`
#[derive(Debug, Args)]
#[command(
    after_help = "docs/import.md describes what each kind of file contains, and how to make it.\n\n\
    Examples:\n  tracer import trace.txt\n  tracer import trace.dat\n  \
    perf script | tracer import -o run.trace -"
)]
pub struct Import {
    /// trace.dat of trace-cmd, text of ftrace (trace, trace_pipe), `trace-cmd report` or `perf script`, a log of AMD_LOG_LEVEL, or output of
    /// `strace -f -ttt -T`; - for text from standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the trace to this folder [default: FILE.trace]
    #[arg(short, long, value_name = "DIR", required_if_eq("file", "-"))]
    pub output: Option<PathBuf>,
    /// Replace an existing trace
    #[arg(long)]
    pub overwrite: bool,
    /// Permissions of the trace's folders, octal; files get the same without execute permission [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
}
