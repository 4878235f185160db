//! Options of `tracer verify`.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use tracer_files::Mode;

use super::capture::{BUFFER_MIB, PAUSE_LIMIT, PAUSE_LIMIT_MS, ROW_MEMORY_MIB};

/// Format of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerdictFormat {
    /// Text for people
    Text,
    /// JSON (stable schema: docs/verdict.schema.json)
    Json,
    /// JUnit XML for CI systems: a test case per rule
    Junit,
    /// GitHub Actions: annotations, and a table in the summary of the step
    Github,
    /// Markdown tables
    Markdown,
}

/// `tracer verify`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer verify [OPTIONS] TRACE\n       tracer verify [OPTIONS] -- COMMAND [ARGUMENT]...\n       \
    tracer verify --claims[=ID,...] [OPTIONS] [-- DISPATCHER [ARGUMENT]...]",
    group = ArgGroup::new("recording").args(["command", "claims"]).multiple(true),
    after_help = "Exit status: 0 pass (or warn, without --strict), 1 fail, 2 usage error, 3 inconclusive: the evidence does not \
    suffice. 125 to 127 as for `tracer record` if tracer could not record the command.\n\n\
    With --claims: 0 if every testable claim was decided as its sources say (a claim may be known to be wrong), 1 if one was decided \
    otherwise, 3 if one is inconclusive or, with --strict, not tested.\n\n\
    Built-in policies: mes-bypass, doorbell-bypass, hws, ring-submission. docs/policies.md describes how to write others.\n\n\
    Examples:\n  tracer verify --policy mes-bypass --junit out.xml app.trace\n  \
    sudo tracer verify --policy mes-bypass --format github -- ./app\n  \
    sudo tracer verify --claims --json claims.json"
)]
pub struct Verify {
    /// Name of a built-in policy, or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "doorbell-bypass",
        conflicts_with = "claims"
    )]
    pub policy: PathBuf,
    /// Also compare the trace with a rocpd file of rocprofv3 of the same run: fail if one has a dispatch that the other has not;
    /// repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    pub against: Vec<PathBuf>,
    /// Test the claims of docs/claims.md, or those with these ids, on the GPU of this machine
    ///
    /// tracer records workloads of hsa-dispatch, which it searches beside its own binary and on PATH. With a command after `--`,
    /// it appends the arguments of each workload to that command instead. Claim C7 provokes errors on queues of its own.
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "all"
    )]
    pub claims: Option<Vec<String>>,
    /// Shell command that submits jobs on compute rings of the driver, to show that tracer sees such jobs
    #[arg(long, value_name = "COMMAND", requires = "claims", conflicts_with = "trace")]
    pub control: Option<String>,
    /// Print results that `--claims --json FILE` wrote instead of testing; repeatable
    #[arg(long, value_name = "FILE", requires = "claims", conflicts_with_all = ["command", "control", "output", "trace"])]
    pub from: Vec<PathBuf>,
    /// Treat warnings as failures, and claims that were not tested as inconclusive
    #[arg(long)]
    pub strict: bool,
    /// Format of the verdict on standard output; the output of the command comes first
    #[arg(long, value_enum, default_value = "text")]
    pub format: VerdictFormat,
    /// Also write the verdict as JUnit XML to this file
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    pub junit: Option<PathBuf>,
    /// Also write the verdict as JSON to this file (for claims: docs/claims.schema.json)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep the trace of the command in this folder (with --claims, a folder of traces); see `tracer record --help`
    #[arg(short, long, value_name = "DIR", requires = "recording")]
    pub output: Option<PathBuf>,
    /// Replace an existing trace
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Permissions of the folders that tracer writes, octal; files (--junit, --json, the trace's) get the same without execute
    /// permission [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
    /// Do not follow child processes of the command
    #[arg(long, requires = "command", conflicts_with = "claims")]
    pub no_follow: bool,
    /// Run the command as root instead of as the user who called sudo
    #[arg(long, requires = "recording")]
    pub as_root: bool,
    /// Longest pause of a process while tracer attaches probes; see `tracer record --help`
    #[arg(
        long,
        value_name = "MS",
        env = PAUSE_LIMIT,
        hide_env_values = true,
        default_value_t = PAUSE_LIMIT_MS,
        value_parser = clap::value_parser!(u32).range(1..=60_000),
    )]
    pub pause_limit: u32,
    /// Event buffer size in MiB; see `tracer record --help`
    #[arg(long, value_name = "MIB", requires = "command", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// Memory for rows that wait for the disk; see `tracer record --help`
    #[arg(long, value_name = "MIB", requires = "command", default_value_t = ROW_MEMORY_MIB, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub row_memory: u32,
    /// The trace to check
    #[arg(
        value_name = "TRACE",
        required_unless_present = "recording",
        conflicts_with = "recording"
    )]
    pub trace: Option<PathBuf>,
    /// The command to record with --detail full and then check
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Verify {
    /// Whether it records traces that nobody keeps.
    pub fn needs_scratch(&self) -> bool {
        let tests = self.claims.is_some() && self.from.is_empty();
        self.output.is_none() && (tests || self.records())
    }

    /// Whether this process records a command. Claims are tested by recorders of their own.
    pub fn records(&self) -> bool {
        !self.command.is_empty() && self.claims.is_none()
    }
}
