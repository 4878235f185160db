//! Tasks that plain cargo cannot do: eBPF and GPU objects, root file systems, demo, tests, installation.
//!
//! `cargo xtask TASK` runs them. Files that the tasks download or build for themselves go into one cache folder outside the project
//! (see [`project`]), where a fresh clone on the same machine finds them again.

mod apt;
mod bench;
mod book;
mod build;
mod cargo;
mod claims;
mod clients;
mod cmd;
mod demo;
mod dist;
mod faults;
mod fuzz;
mod imports;
mod install;
mod lock;
mod project;
mod remap;
mod setup;
mod simulated;
mod soak;
mod test;
mod vm;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::build::Profile;
use crate::project::Project;
use crate::setup::Part;
use crate::test::Length;

/// The project's tasks.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the build and the tests need beyond cargo; does nothing if it is installed.
    ///
    /// Files go into $TRACER_CACHE, or $XDG_CACHE_HOME/tracer, or ~/.cache/tracer; under sudo, HOME as sudo sets it decides. Debian
    /// packages come from the mirror of this machine's apt configuration, or from $TRACER_DEBIAN_MIRROR. The packages of the system
    /// do not change.
    Setup {
        /// Install only this part.
        #[arg(long, value_name = "PART")]
        only: Option<Part>,
    },
    /// Build the eBPF object, the GPU code objects and the workspace.
    Build {
        /// Build the workspace optimized; the eBPF and GPU objects always are.
        #[arg(long)]
        release: bool,
    },
    /// Record the bundled dispatcher on the simulated GPU and print the report.
    Demo,
    /// Run clippy on the workspace, the eBPF programs and the GPU kernels; warnings are errors.
    Lint,
    /// Build everything and run all tests; the end-to-end tests run as root, with sudo if necessary.
    ///
    /// Includes the tests on Debian's kernels in virtual machines, if QEMU is installed or can be.
    Test {
        /// Run only the tests on Debian's kernels.
        #[arg(long)]
        vm: bool,
        /// Repeat attacks and other long checks as often as docs/reliability.md says, and print its table.
        ///
        /// Runs all other tests, too; `cargo xtask test --long -- FILTER` runs only those that the filter names.
        #[arg(long, conflicts_with = "vm")]
        long: bool,
        /// Arguments for the test runner, such as a filter; with them, documentation tests are left out.
        #[arg(last = true, value_name = "RUNNER ARGS")]
        runner_args: Vec<String>,
    },
    /// Run a command, or a shell, on one of Debian's kernels with amdgpu, in a virtual machine that sees all files here.
    ///
    /// The command runs as root in this working directory, with this workspace's programs on its PATH. The exit code is that of
    /// the command, or 125 if the machine failed. Its writes are discarded, except in shared folders.
    Vm(vm::Vm),
    /// Test the claims on simulated GPUs, with a real kernel in a virtual machine, and write docs/claims.md.
    Claims,
    /// Record programs of others on the simulated GPU, compare each trace with its truth log, and write docs/compatibility.md.
    ///
    /// Downloads them from Debian's mirror and from where pip is configured to find packages, into the cache. Needs root.
    Clients(clients::Clients),
    /// Fuzz the parsers of foreign files with libFuzzer; a crash, a slow input or a wrong result fails.
    Fuzz(fuzz::Fuzz),
    /// Run `tracer serve` while processes and queues come and go; its memory and its series must stay bounded.
    Soak(soak::Soak),
    /// Measure cost and speed of recording; fails if a figure misses its target. Needs root.
    ///
    /// Each figure is a rate, or a ratio of two times, within one run.
    Bench(bench::Bench),
    /// Make the book of docs/, in target/book.
    Book,
    /// Build tracer optimized and install it with hsa-dispatch, man pages and completions, so that `sudo tracer` works.
    Install(install::Install),
    /// Make the packages of a release: tarball, .deb, .rpm, files for containers, list of parts, checksums.
    ///
    /// The programs need glibc 2.28. ADVISORY_DB can name a copy of the database of advisories to check against, and SIGNING_KEY a key
    /// of ssh-keygen that signs the checksums.
    Dist(dist::Dist),
    /// Remove what `install` installed.
    Uninstall(install::Uninstall),
    /// Print the paths in use, as shell assignments: `eval "$(cargo xtask env)"`.
    Env,
    /// Remove what `setup` and `clients` installed.
    CleanCache,
}

fn main() -> ExitCode {
    match build::stable_names::become_compiler().and_then(|()| run(&Cli::parse().task)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<ExitCode> {
    let project = Project::locate()?;
    let done = match task {
        Task::Setup { only } => setup::run(&project, only.as_ref().map_or(&Part::ALL, std::slice::from_ref)),
        Task::Build { release } => build::run(&project, if *release { Profile::Release } else { Profile::Dev }),
        Task::Demo => demo::run(&project),
        Task::Lint => build::lint(&project),
        Task::Test {
            vm: true, runner_args, ..
        } => test::run_in_machines(&project, runner_args),
        Task::Test { long, runner_args, .. } => {
            test::run(&project, if *long { Length::Long } else { Length::Quick }, runner_args)
        }
        Task::Vm(wanted) => return vm::run(&project, wanted),
        Task::Claims => return claims::run(&project),
        Task::Clients(wanted) => return clients::run(&project, wanted),
        Task::Fuzz(wanted) => fuzz::run(&project, wanted),
        Task::Soak(wanted) => soak::run(&project, wanted),
        Task::Bench(wanted) => return bench::run(&project, wanted),
        Task::Book => book::run(&project),
        Task::Install(wanted) => install::install(&project, wanted),
        Task::Dist(wanted) => dist::run(&project, wanted),
        Task::Uninstall(wanted) => install::uninstall(wanted),
        Task::Env => {
            print!("{}", project.shell_assignments());
            Ok(())
        }
        Task::CleanCache => setup::clean(&project),
    };
    done.map(|()| ExitCode::SUCCESS)
}
