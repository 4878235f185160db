//! Command line.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::hsa::DoorbellOp;
use crate::hsa::executable::LoadFrom;
use crate::workloads::Workload;

/// Submits work to an AMD GPU through the HSA runtime, checks the results, and tells exactly what it did.
///
/// Exit codes: 0 all results are right; 1 something is wrong; 2 wrong usage; 3 no runtime, GPU or kernels.
#[derive(Debug, Parser)]
#[command(name = "hsa-dispatch", version)]
pub struct Cli {
    /// Options of all workloads.
    #[command(flatten)]
    pub options: Options,
    /// What to do.
    #[command(subcommand)]
    pub workload: Workload,
}

/// Options of all workloads.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Options {
    /// Where the JSON summary goes; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-", global = true)]
    pub json: PathBuf,
    /// Also write one JSON line per submitted packet.
    #[arg(long, value_name = "FILE", global = true)]
    pub log: Option<PathBuf>,
    /// Number of the GPU, from 0.
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    pub agent: usize,
    /// Folder of code objects, named gfxNNN.co [default: $HSA_DISPATCH_KERNELS, else gpu-kernels beside this program or
    /// beside its folder]
    #[arg(long, value_name = "DIR", global = true)]
    pub kernels: Option<PathBuf>,
    /// How the code object is given to the runtime.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub load_from: LoadFrom,
    /// The HSA runtime [default: libhsa-runtime64.so.1]
    #[arg(long, value_name = "PATH", global = true)]
    pub library: Option<PathBuf>,
    /// The function that rings doorbells.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub doorbell_op: DoorbellOp,
    /// Longest wait for anything, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", global = true)]
    pub timeout: NonZeroU64,
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
