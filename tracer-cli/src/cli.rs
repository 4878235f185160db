//! The command line.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use tracer_files::Mode;

use crate::units;

/// Shows which path every kernel submitted to an AMD GPU takes: a doorbell stored from user space into an AQL queue, or
/// a job on a ring of the kernel driver.
#[derive(Debug, Parser)]
#[command(name = "tracer", version, about, max_term_width = 100)]
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
    /// Run a command, or attach to processes or the whole machine, and record the path of every kernel that they submit
    Record(Record),
    /// Tell what a trace says
    Report(Report),
    /// Show what goes on, queue by queue, on a screen; or a trace as it went
    Top(Top),
    /// Answer over HTTP what goes on: metrics for Prometheus, a live page
    Serve(Serve),
    /// Judge a trace, or a command that is recorded first, by a policy
    Verify(Verify),
    /// Tell what record would capture on this machine, what it would miss, and how to mend that
    Doctor(Doctor),
}

/// Room for events unless chosen otherwise, MiB: a burst at the highest rate measured fills it in half a second.
const BUFFER_MIB: u32 = 32;
/// Memory for rows that wait for the disk unless chosen otherwise, MiB.
const ROW_MEMORY_MIB: u32 = 192;
/// The variable that --pause-limit is taken from where it is not given: for machines that are busy.
const PAUSE_LIMIT: &str = "TRACER_PAUSE_LIMIT";
/// Default of --pause-limit, ms.
const PAUSE_LIMIT_MS: u32 = 100;

/// How much is captured of each submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// Doorbells with the packets that they publish
    Dispatch,
    /// And every reserve of packets (advance of a write index)
    Full,
}

/// Which calls of the libraries above the queues are captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// None
    #[default]
    None,
    /// Those of HIP functions; dispatches and copies name theirs
    Hip,
    /// Those of HSA functions likewise
    Hsa,
    /// Both
    All,
    /// Both, counted by process and function and not recorded: no dispatch names its call or stream
    Stats,
}

impl Api {
    /// Whether submissions are linked to calls.
    pub fn links(self) -> bool {
        matches!(self, Self::Hip | Self::Hsa | Self::All)
    }
}

impl From<Api> for tracer_capture::session::Api {
    fn from(api: Api) -> Self {
        match api {
            Api::None => Self::None,
            Api::Hip => Self::Hip,
            Api::Hsa => Self::Hsa,
            Api::All => Self::All,
            Api::Stats => Self::Stats,
        }
    }
}

/// What is captured, of whom: the same for every command that watches.
#[derive(Debug, Args)]
pub struct Capture {
    /// How much to capture
    #[arg(long, value_enum, default_value = "dispatch")]
    pub detail: Detail,
    /// Capture calls of HIP and HSA functions, with results and times
    ///
    /// Reserves are captured as with --detail full, except with `stats`: a call's packets are those that its thread reserved.
    #[arg(long, value_enum, default_value = "none")]
    pub api: Api,
    /// Don't trace the processes that it makes
    #[arg(long, conflicts_with = "all")]
    pub no_follow: bool,
    /// Run the command as root, not as the user who called sudo
    #[arg(long, conflicts_with_all = ["pid", "all"])]
    pub as_root: bool,
    /// Let debug files of stripped runtimes come from the servers in DEBUGINFOD_URLS; the command may wait 10 s for one
    #[arg(long)]
    pub debuginfod: bool,
    /// Attach to this process, with its threads and children (may be given several times)
    ///
    /// It is neither stopped nor ended. What it submits is recorded from the attach on, until it ends, or tracer is
    /// interrupted; of packets that lay in its queues by then, those whose doorbells are still to come.
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// Watch every process of the machine that submits to AMD GPUs, until Ctrl-C or --duration
    ///
    /// Those that use a GPU already are attached to, as by --pid. Others are traced from their first packet on, whoever starts
    /// them; each is stopped for a moment when it begins to use the GPU (its first call of the driver), and not before. Needs
    /// the host's process ids.
    #[arg(short, long, conflicts_with_all = ["pid", "command"])]
    pub all: bool,
    /// How long a process may be paused while its probes are attached; then it goes on without them, which counts as a loss
    #[arg(long, value_name = "MS", env = PAUSE_LIMIT, default_value_t = PAUSE_LIMIT_MS, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub pause_limit: u32,
    /// Room for events that the recorder has not taken yet; what finds none is lost, and counted
    #[arg(long, value_name = "MIB", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
}

/// `tracer record`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: the command's own, 128 + N if signal N killed it; 124 if that is 0 and a\n\
    process created a compute queue for which no doorbell probe was attached, 125 if tracer failed, 126 if the command can't be run, 127 if it is not found. With --pid and --all: 0, 124 or 125.\n\n\
    Examples:\n  sudo tracer record ./app --its-own-options\n  sudo tracer record -o run-%pid%.trace --detail full -- ./app\n  \
    sudo tracer record -p $(pgrep -n app) --duration 10s\n  sudo tracer record -a",
    group = ArgGroup::new("running").args(["pid", "all"])
)]
pub struct Record {
    /// Where the trace goes; %pid%, %hostname% and %time% are filled in [default: the command's name with .trace; with --all
    /// system-%time%.trace]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace a trace that is there already
    #[arg(long)]
    pub overwrite: bool,
    /// Permissions of the trace's folders, in octal; its files lack the right to execute [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
    /// Memory for rows that wait for the disk; beyond, dispatches and doorbells are aggregated: counted in runs, without rows
    /// of their own. With 0 they always are
    #[arg(long, value_name = "MIB", default_value_t = ROW_MEMORY_MIB, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub row_memory: u32,
    #[command(flatten)]
    pub capture: Capture,
    /// End the recording after that time: 10, 10s, 500ms, 5m, 1h
    #[arg(long, value_name = "TIME", requires = "running", conflicts_with = "command", value_parser = units::time)]
    pub duration: Option<Duration>,
    /// The command
    #[arg(
        required_unless_present_any = ["pid", "all"],
        conflicts_with = "pid",
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

/// `tracer top`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer top [OPTIONS] -- COMMAND [ARGUMENT]...\n       tracer top [OPTIONS] -p PID...\n       \
    tracer top [OPTIONS] -a\n       tracer top [OPTIONS] TRACE",
    group = ArgGroup::new("subject").args(["trace", "pid", "all", "command"]).required(true),
    group = ArgGroup::new("live").args(["pid", "all", "command"]).multiple(true),
    after_help = "A command's own output goes nowhere: the screen is taken. Where it matters, start it elsewhere and attach by -p.\n\
    Keys: ? shows them all, q ends; what is watched goes on without tracer then. See docs/top.md.\n\n\
    Examples:\n  sudo tracer top -- ./app --its-own-options\n  sudo tracer top -p $(pgrep -n app)\n  \
    sudo tracer top --once --json --duration 5s -p $(pgrep -n app) | jq .totals\n  tracer top app.trace --speed 10"
)]
pub struct Top {
    /// The trace, which is replayed
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// How many times as fast as it went
    #[arg(long, value_name = "N", default_value_t = 1, requires = "trace", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub speed: u32,
    /// Print how it stands at the end, and no screen
    #[arg(long, requires = "json")]
    pub once: bool,
    /// For programs: names and meaning are stable
    #[arg(long, requires = "once")]
    pub json: bool,
    /// End after that time: 10, 10s, 500ms, 5m, 1h
    #[arg(long, value_name = "TIME", requires = "live", value_parser = units::time)]
    pub duration: Option<Duration>,
    /// Where key R records to; %pid%, %hostname% and %time% are filled in [default: NAME-%time%.trace]
    #[arg(short, long, value_name = "DIR", requires = "live")]
    pub output: Option<PathBuf>,
    /// Permissions of the folders of a trace that key R records, in octal; its files lack the right to execute [default: 700, files 600]
    #[arg(
        long,
        value_name = "MODE",
        requires = "live",
        default_value = "700",
        hide_default_value = true
    )]
    pub mode: Mode,
    #[command(flatten)]
    pub capture: Capture,
    /// The command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `tracer serve`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer serve [OPTIONS] -- COMMAND [ARGUMENT]...\n       tracer serve [OPTIONS] -p PID...\n       \
    tracer serve [OPTIONS] -a",
    group = ArgGroup::new("subject").args(["pid", "all", "command"]).required(true),
    after_help = "/metrics is for Prometheus (dashboards/ has dashboards and alerts for it), / a live page, /api/live its data,\n\
    /healthz says whether capture lives. Exit status: as of `tracer record`. See docs/serve.md.\n\n\
    Examples:\n  sudo tracer serve -- ./app\n  sudo tracer serve -p $(pgrep -n app) --listen 127.0.0.1:9000\n  \
    sudo tracer serve --listen 0.0.0.0:9478 --token-file /etc/tracer/token -- ./app"
)]
pub struct Serve {
    /// Where to answer; other addresses than loopback need --token-file or --tls-cert
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9478")]
    pub listen: SocketAddr,
    /// Accept requests that call the server by this name, besides addresses and localhost; repeatable
    ///
    /// Without --token-file and TLS other names are refused: a web page could make a name of its own point here and read
    /// the answers.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Answer only requests that carry the first line of this file: `Authorization: Bearer ...`
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Answer over TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Go on answering when all that was watched has ended, until a signal comes
    #[arg(long)]
    pub stay: bool,
    #[command(flatten)]
    pub capture: Capture,
    /// The command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Form of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerdictFormat {
    /// For people
    Text,
    /// For programs: names and meaning are stable (docs/verdict.schema.json)
    Json,
    /// For CI systems: a test case a rule
    Junit,
    /// For GitHub Actions: an annotation, and the rules in the step's summary
    Github,
    /// For documents: tables
    Markdown,
}

/// `tracer verify`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer verify [OPTIONS] TRACE\n       tracer verify [OPTIONS] -- COMMAND [ARGUMENT]...\n       \
    tracer verify --claims[=ID,...] [OPTIONS] [-- DISPATCHER [ARGUMENT]...]",
    group = ArgGroup::new("recording").args(["command", "claims"]).multiple(true),
    after_help = "Exit status: 0 pass (or warn, without --strict), 1 fail, 2 wrong usage, 3 inconclusive: the evidence does not\n\
    suffice; 125 to 127 as of `tracer record` if the command could not be recorded.\n\
    With --claims: 0 every claim that could be tested was decided, and as the sources say (which may be: contradicted);\n\
    1 one was decided otherwise than the sources say; 3 one is inconclusive, or (with --strict) not tested.\n\n\
    Built-in policies: mes-bypass, doorbell-bypass, hws, ring-submission. Own ones: docs/policies.md.\n\n\
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
    /// Test the claims of docs/claims.md, or those of these ids, on the GPU of this machine
    ///
    /// Records workloads of hsa-dispatch, which is looked for beside tracer and on PATH, unless a command is given: then
    /// each workload's words are appended to that. One of them (C7) provokes errors on queues of its own.
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "all"
    )]
    pub claims: Option<Vec<String>>,
    /// A shell command that submits jobs on compute rings of the driver: shows that such jobs would be seen
    #[arg(long, value_name = "COMMAND", requires = "claims", conflicts_with = "trace")]
    pub control: Option<String>,
    /// Test nothing, but show what `--claims --json FILE` wrote (may be given several times)
    #[arg(long, value_name = "FILE", requires = "claims", conflicts_with_all = ["command", "control", "output", "trace"])]
    pub from: Vec<PathBuf>,
    /// Let warnings fail; let claims that were not tested be inconclusive
    #[arg(long)]
    pub strict: bool,
    /// Form of the verdict on standard output; a command's own output comes before it
    #[arg(long, value_enum, default_value = "text")]
    pub format: VerdictFormat,
    /// Write the verdict as JUnit there, too
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    pub junit: Option<PathBuf>,
    /// Write the verdict as JSON there, too (of claims: docs/claims.schema.json)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep the trace of the command there (with --claims, a folder of traces); see `tracer record --help`
    #[arg(short, long, value_name = "DIR", requires = "recording")]
    pub output: Option<PathBuf>,
    /// Replace a trace that is there already
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Permissions of folders that are written, in octal; files (--junit, --json, the trace's) lack the right to execute [default: 700, files 600]
    #[arg(long, value_name = "MODE", default_value = "700", hide_default_value = true)]
    pub mode: Mode,
    /// Don't trace the processes that the command makes
    #[arg(long, requires = "command", conflicts_with = "claims")]
    pub no_follow: bool,
    /// Run the command as root, not as the user who called sudo
    #[arg(long, requires = "recording")]
    pub as_root: bool,
    /// How long a process may be paused while its probes are attached; see `tracer record --help`
    #[arg(long, value_name = "MS", env = PAUSE_LIMIT, default_value_t = PAUSE_LIMIT_MS, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub pause_limit: u32,
    /// Room for events that the recorder has not taken yet; see `tracer record --help`
    #[arg(long, value_name = "MIB", requires = "command", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// Memory for rows that wait for the disk; see `tracer record --help`
    #[arg(long, value_name = "MIB", requires = "command", default_value_t = ROW_MEMORY_MIB, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub row_memory: u32,
    /// The trace
    #[arg(
        value_name = "TRACE",
        required_unless_present = "recording",
        conflicts_with = "recording"
    )]
    pub trace: Option<PathBuf>,
    /// The command, recorded with --detail full and then judged
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Top {
    /// Whether it watches what goes on, not a trace.
    pub fn is_live(&self) -> bool {
        self.trace.is_none()
    }
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
    /// Resume processes that a dead tracer left paused, print what became of them, and check nothing else
    ///
    /// Recording does the same when it begins.
    #[arg(long, conflicts_with_all = ["json", "library", "debuginfod"])]
    pub resume: bool,
    /// Look at this HSA runtime, instead of those that a search finds (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub library: Vec<PathBuf>,
    /// Let debug files of stripped runtimes come from the servers in DEBUGINFOD_URLS, where they are kept for record
    #[arg(long)]
    pub debuginfod: bool,
}
