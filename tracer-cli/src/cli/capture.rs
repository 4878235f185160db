//! Options that every command that captures has.

use clap::{Args, ValueEnum};

/// Default of --buffer, MiB: a burst at the highest rate measured fills it in half a second.
pub(super) const BUFFER_MIB: u32 = 32;
/// Default of --row-memory, MiB.
pub(super) const ROW_MEMORY_MIB: u32 = 192;
/// The variable that replaces the default of --pause-limit: for busy machines.
pub(super) const PAUSE_LIMIT: &str = "TRACER_PAUSE_LIMIT";
/// Default of --pause-limit, ms.
pub(super) const PAUSE_LIMIT_MS: u32 = 100;

/// What to capture of each submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// Doorbells, and the packets that they publish
    Dispatch,
    /// Also every reserve of packets (advance of a write index)
    Full,
}

/// Which API calls to capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// No calls
    #[default]
    None,
    /// Calls of HIP functions; dispatches and copies name their call
    Hip,
    /// Calls of HSA functions; dispatches and copies name their call
    Hsa,
    /// Calls of HIP and HSA functions
    All,
    /// Only counts and times per process and function; no dispatch names its call
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

/// What to capture, and of which processes.
#[derive(Debug, Args)]
pub struct Capture {
    /// What to capture of each submission
    #[arg(long, value_enum, default_value = "dispatch")]
    pub detail: Detail,
    /// Capture calls of HIP and HSA functions, with their results and times
    ///
    /// Except for `stats`, this also captures reserves, as --detail full does: they link packets to the call of their thread.
    #[arg(long, value_enum, default_value = "none")]
    pub api: Api,
    /// Do not follow child processes
    #[arg(long, conflicts_with = "all")]
    pub no_follow: bool,
    /// Run the command as root instead of as the user who called sudo
    #[arg(long, conflicts_with_all = ["pid", "all"])]
    pub as_root: bool,
    /// Fetch debug files of stripped runtimes from the servers in DEBUGINFOD_URLS; the command may wait up to 10 s for each
    #[arg(long)]
    pub debuginfod: bool,
    /// Attach to a running process, all its threads and its child processes; repeatable
    ///
    /// tracer captures what the process submits from now on, and packets that are in its queues already if their doorbell is
    /// still to come. The process continues when tracer exits.
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// Watch the whole system, including processes that start later, until Ctrl-C or --duration
    ///
    /// tracer attaches to every process that uses an AMD GPU, as with --pid. It pauses a process at its first call of the
    /// driver, to capture it from its first packet on. Processes that use no GPU are never paused. In a container this needs
    /// the pid namespace of the host.
    #[arg(short, long, conflicts_with_all = ["pid", "command"])]
    pub all: bool,
    /// Longest pause of a process while tracer attaches probes; after it, the process continues without them, and tracer
    /// counts a loss
    #[arg(long, value_name = "MS", env = PAUSE_LIMIT, default_value_t = PAUSE_LIMIT_MS, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub pause_limit: u32,
    /// Event buffer size in MiB; events that do not fit are dropped and counted
    #[arg(long, value_name = "MIB", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
}
