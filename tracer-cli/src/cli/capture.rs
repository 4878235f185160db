//! Options that every command that captures has.

use clap::{Args, ValueEnum};
use tracer_capture::session::{self, Class, Classes, Layer};

/// Default of --buffer, MiB: a burst at the highest rate measured fills it in half a second.
pub(super) const BUFFER_MIB: u32 = 32;
/// Default of --stack-limit, stacks per second.
const STACK_LIMIT: u32 = 1000;
/// Default of --row-memory, MiB.
pub(super) const ROW_MEMORY_MIB: u32 = 64;
/// The variable that replaces the default of --pause-limit: for busy machines.
pub(super) const PAUSE_LIMIT: &str = "TRACER_PAUSE_LIMIT";
/// Default of --pause-limit, ms.
pub(super) const PAUSE_LIMIT_MS: u32 = 100;

/// How to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// eBPF; where it is not permitted, perf events or ftrace if they suffice
    Auto,
    /// eBPF programs: the whole picture
    Ebpf,
    /// Perf events: for machines that do not permit eBPF
    Perf,
    /// ftrace: for machines that permit tracefs only
    Ftrace,
}

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
    /// Calls of HIP functions
    Hip,
    /// Calls of HSA functions
    Hsa,
    /// Calls of functions of AMD's OpenCL
    Opencl,
    /// Calls of all of these
    All,
    /// Only counts and times per process and function, of the named libraries or of all; no dispatch names its call
    Stats,
}

/// Calls of which functions get a row each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// Submissions: kernels, graphs, functions of the host
    Submit,
    /// Copies and fills
    Copy,
    /// Allocations, mappings, migrations
    Memory,
    /// Queues and streams
    Queue,
    /// Waits, signals, events, barriers
    Sync,
    /// Initialization, modules, code objects, graphs
    Setup,
    /// Questions for properties and states
    Query,
    /// Steps of a submission: indexes of queues, stores to signals, arguments of kernels
    Step,
    /// All of these
    All,
}

impl Rows {
    fn classes(self) -> Classes {
        let class = match self {
            Self::Submit => Class::Submit,
            Self::Copy => Class::Copy,
            Self::Memory => Class::Memory,
            Self::Queue => Class::Queue,
            Self::Sync => Class::Sync,
            Self::Setup => Class::Setup,
            Self::Query => Class::Query,
            Self::Step => Class::Step,
            Self::All => return Classes::ALL,
        };
        Classes::NONE.with(class)
    }
}

/// What to capture, and of which processes.
#[derive(Debug, Args)]
pub struct Capture {
    /// What to capture of each submission
    #[arg(long, value_enum, default_value = "dispatch")]
    pub detail: Detail,
    /// Capture calls of functions of these libraries, with their results and times: --api hip,hsa
    ///
    /// Dispatches and copies name the call that submitted them. Except for `stats`, this also captures reserves, as --detail full
    /// does: they link packets to the call of their thread.
    #[arg(
        long,
        value_enum,
        value_name = "LIBRARY,...",
        value_delimiter = ',',
        default_value = "none"
    )]
    pub api: Vec<Api>,
    /// With --api, store a row for each call of functions of these classes, and count the calls of the others [default: all except
    /// `query` and `step`; with `stats` none]
    #[arg(long, value_enum, value_name = "CLASS,...", value_delimiter = ',', requires = "api")]
    pub api_rows: Vec<Rows>,
    /// Record the user stack of launches: which function of the program launched each kernel
    ///
    /// tracer copies the top of the stack of a thread that rings a doorbell, and unwinds it outside of the program: programs need no
    /// frame pointers. Functions of Python have names if Python runs with -X perf. `tracer export --format folded` writes the
    /// stacks for flame graphs. docs/stacks.md has the limits and the cost.
    #[arg(long)]
    pub stacks: bool,
    /// With --stacks, the maximum number of stacks per second of all processes together; launches above it have none, and are counted
    #[arg(long, value_name = "N", default_value_t = STACK_LIMIT, requires = "stacks", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub stack_limit: u32,
    /// How to capture: without eBPF, packets are read after their doorbells, and less is watched (docs/backends.md)
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: Backend,
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
    #[arg(
        long,
        value_name = "MS",
        env = PAUSE_LIMIT,
        hide_env_values = true,
        default_value_t = PAUSE_LIMIT_MS,
        value_parser = clap::value_parser!(u32).range(1..=60_000),
    )]
    pub pause_limit: u32,
    /// Event buffer size in MiB; events that do not fit are dropped and counted
    #[arg(long, value_name = "MIB", default_value_t = BUFFER_MIB, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
}

impl Capture {
    /// Returns the API calls to capture.
    pub fn calls(&self) -> session::Api {
        let named = |api: Api| self.api.contains(&api);
        let layers = [Layer::Hip, Layer::Hsa, Layer::OpenCl]
            .into_iter()
            .zip([Api::Hip, Api::Hsa, Api::Opencl]);
        let mut layers: Vec<Layer> = layers.filter(|&(_, api)| named(api)).map(|(layer, _)| layer).collect();
        if named(Api::All) || layers.is_empty() && named(Api::Stats) {
            layers = Layer::ALL.to_vec();
        }
        let rows = match &self.api_rows[..] {
            [] if named(Api::Stats) => Classes::NONE,
            [] => Classes::USUAL,
            rows => rows.iter().fold(Classes::NONE, |all, rows| all.and(rows.classes())),
        };
        session::Api::new(&layers, rows)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::super::record::Record;
    use super::*;

    fn parsed(words: &[&str]) -> Result<session::Api, clap::Error> {
        let words = ["record"].into_iter().chain(words.iter().copied()).chain(["./app"]);
        let matches = Record::augment_args(clap::Command::new("record")).try_get_matches_from(words)?;
        Ok(Record::from_arg_matches(&matches)?.capture.calls())
    }

    fn of(words: &[&str]) -> session::Api {
        parsed(words).expect("valid options")
    }

    #[test]
    fn libraries_and_classes_add_up() {
        let api = session::Api::new;
        assert_eq!(of(&[]), api(&[], Classes::USUAL));
        assert_eq!(of(&["--api", "all"]), session::Api::ALL);
        assert_eq!(of(&["--api", "stats"]), session::Api::STATS);
        assert_eq!(of(&["--api", "stats,hip"]), api(&[Layer::Hip], Classes::NONE));
        assert_eq!(
            of(&["--api", "opencl,hsa"]),
            api(&[Layer::Hsa, Layer::OpenCl], Classes::USUAL)
        );
        let rows = Classes::NONE.with(Class::Submit).with(Class::Query);
        assert_eq!(
            of(&["--api", "hip", "--api-rows", "query,submit"]),
            api(&[Layer::Hip], rows)
        );
        assert_eq!(of(&["--api=all", "--api-rows=all"]), api(&Layer::ALL, Classes::ALL));
        for wrong in [["--api-rows", "query"], ["--api", "hipp"], ["--api", "hip,"]] {
            assert!(parsed(&wrong).is_err(), "{wrong:?}");
        }
    }
}
