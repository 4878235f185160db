//! The command line.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::hsa::DoorbellOp;
use crate::hsa::executable::LoadFrom;
use crate::workloads::Workload;

/// Submits work to an AMD GPU through the HSA runtime or HIP, checks the results, and reports exactly what it did.
///
/// Exit codes: 0 all results are right; 1 something is wrong; 2 wrong usage; 3 no runtime, GPU or kernels.
#[derive(Debug, Parser)]
#[command(name = "hsa-dispatch", version)]
pub struct Cli {
    /// Options of all workloads.
    #[command(flatten)]
    pub options: Options,
    /// The workload to run.
    #[command(subcommand)]
    pub workload: Workload,
}

/// Options of all workloads.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Options {
    /// The interface through which the work is submitted.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub api: Api,
    /// Where to write the JSON summary; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-", global = true)]
    pub json: PathBuf,
    /// Also write one JSON line per submitted packet, or per HIP call.
    #[arg(long, value_name = "FILE", global = true)]
    pub log: Option<PathBuf>,
    /// Number of the GPU, from 0.
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    pub agent: usize,
    /// Folder of code objects, named gfxNNN.co [default: $HSA_DISPATCH_KERNELS, else gpu-kernels beside this program or
    /// beside its folder]
    #[arg(long, value_name = "DIR", global = true)]
    pub kernels: Option<PathBuf>,
    /// How the code object is passed to the runtime.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub load_from: LoadFrom,
    /// The library of that interface [default: libhsa-runtime64.so.1, or the newest libamdhip64.so.N]
    #[arg(long, value_name = "PATH", global = true)]
    pub library: Option<PathBuf>,
    /// The function that rings doorbells.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub doorbell_op: DoorbellOp,
    /// Have the GPU write the times at which packets ran into their completion signals; `compute-only` reads each dispatch's times.
    /// HIP profiles its queues anyway.
    #[arg(long, global = true)]
    pub profile: bool,
    /// Load the runtime only when this file exists.
    #[arg(long, value_name = "FILE", global = true)]
    pub wait_for: Option<PathBuf>,
    /// The longest wait for anything, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", global = true)]
    pub timeout: NonZeroU64,
    /// The shortest time between two submissions of a thread, in microseconds; only through the HSA runtime.
    #[arg(long, value_name = "US", default_value_t = 0, global = true)]
    pub pace: u64,
    /// Put the ring and the indexes into the GPU's memory; only without a runtime (`--api kfd`).
    #[arg(long, global = true)]
    pub device_memory: bool,
    /// Exit without destroying the queues and without shutting the runtime down.
    #[arg(long, value_enum, global = true)]
    pub leave: Option<Leave>,
}

/// How a process exits that releases nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Leave {
    /// By `_exit(0)`.
    Exit,
    /// By SIGKILL.
    Kill,
}

impl Leave {
    /// Exits the process.
    pub fn now(self) -> ! {
        if self == Self::Kill {
            // SAFETY: the arguments are plain integers.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        // SAFETY: nothing in this process is needed any more.
        unsafe { libc::_exit(0) }
    }
}

/// An interface to the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Api {
    /// The HSA runtime: the program itself handles queues, packets and doorbells.
    #[default]
    Hsa,
    /// HIP, as most applications use it.
    Hip,
    /// The kernel driver alone, without a runtime: `direct-doorbell` and `steady`, on a simulated GPU only. With `--library`, the
    /// program loads that library and does not use it.
    Kfd,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn common_options_may_follow_the_workload() {
        let cli = Cli::try_parse_from([
            "hsa-dispatch",
            "burst",
            "-n",
            "10",
            "--doorbell-op",
            "relaxed",
            "--json",
            "x",
        ]);
        let cli = cli.expect("valid");
        assert_eq!(
            (cli.options.doorbell_op, cli.options.timeout.get()),
            (DoorbellOp::Relaxed, 30)
        );
        assert!(matches!(cli.workload, Workload::Burst(burst) if burst.n == 10));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for arguments in [
            ["burst", "-n", "0"],
            ["batch", "--packets", "0"],
            ["multi-queue", "--queues", "0"],
        ] {
            assert!(
                Cli::try_parse_from(["hsa-dispatch"].into_iter().chain(arguments)).is_err(),
                "{arguments:?}"
            );
        }
    }
}
