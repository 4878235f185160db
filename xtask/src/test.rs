//! All tests: as root in one run, otherwise the end-to-end tests under sudo.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::build::{self, Profile};
use crate::cargo;
use crate::clients;
use crate::cmd;
use crate::faults;
use crate::project::Project;
use crate::setup::{self, Part};

/// The packages whose tests load eBPF programs and mount file systems.
const PRIVILEGED: [&str; 2] = ["tracer-e2e", "tracer-faults"];

/// The package whose tests boot kernels, and its only target.
const MACHINES: &str = "tracer-vm";
const MACHINES_TARGET: &str = "vm";

/// The seed of the property tests' random numbers, unless the caller sets another: whether a test finds a regression must not
/// depend on luck. To search for more: `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=15000 cargo xtask test -- garbage reconstruction`.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261122");

/// The variables that request long runs of tests, and name the file to which attacks append their results.
const LONG: &str = "TRACER_LONG";
const RESULTS: &str = "TRACER_FAULTS";

/// How often attacks and other long checks are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So few times that the whole suite takes less than an hour.
    Quick,
    /// As often as docs/reliability.md says: this takes hours.
    Long,
}

/// Builds everything and runs the tests. After long runs, prints the results of the attacks.
pub fn run(project: &Project, length: Length, runner_args: &[String]) -> Result<()> {
    if length == Length::Quick {
        return run_all(project, &Runner::find(length, project), runner_args);
    }
    let results = results(project);
    cmd::remove_all(&results)?;
    let done = run_all(project, &Runner::find(length, project), runner_args);
    // The results are printed after a failure, too: they matter most if an attack succeeded.
    let commit = cmd::read(
        Command::new("git")
            .args(["describe", "--always", "--dirty"])
            .current_dir(project.root()),
    );
    println!("\nAttacks at commit {}", commit.as_deref().unwrap_or("unknown").trim());
    println!("\n{}", faults::table(&results)?);
    done
}

fn results(project: &Project) -> PathBuf {
    project.target().join("faults.jsonl")
}

fn run_all(project: &Project, runner: &Runner, runner_args: &[String]) -> Result<()> {
    setup::run(project, &Part::ALL)?;
    let machines = setup::run(project, &[Part::Vm]);
    if let Err(error) = &machines {
        eprintln!(
            "==> WITHOUT the tests on Debian's kernels ({MACHINES}), as QEMU or a kernel can't be installed: {error:#}"
        );
    }
    build::run(project, Profile::Dev)?;
    let mut left_out: Vec<&str> = Vec::new();
    if machines.is_ok() {
        build::mock(project)?;
    } else {
        left_out.extend(["--exclude", MACHINES]);
    }
    if cmd::is_root()? {
        cmd::run(
            runner
                .command(project)
                .arg("--workspace")
                .args(&left_out)
                .args(runner.arguments(runner_args)),
        )?;
    } else {
        let mut others = runner.command(project);
        cmd::run(
            others
                .arg("--workspace")
                .args(PRIVILEGED.iter().flat_map(|package| ["--exclude", package]))
                .args(&left_out)
                .args(runner.arguments(runner_args)),
        )?;
        cmd::run(privileged(project, runner)?.args(runner.arguments(runner_args)))?;
    }
    if runner_args.is_empty() {
        cmd::run(
            cargo::workspace(project)
                .args(["test", "--workspace", "--doc"])
                .envs(project.variables()),
        )?;
        clients::quick(project)?;
    }
    Ok(())
}

/// Builds everything and runs only the tests in virtual machines.
pub fn run_in_machines(project: &Project, runner_args: &[String]) -> Result<()> {
    setup::run(project, &Part::ALL)?;
    setup::run(project, &[Part::Vm])?;
    build::run(project, Profile::Dev)?;
    build::mock(project)?;
    let runner = Runner::find(Length::Quick, project);
    // The package is not selected with `-p`: its own set of features would recompile everything below it.
    let mut command = runner.command(project);
    command.arg("--workspace");
    match runner.program {
        Program::Nextest => command.args(["-E", &format!("package({MACHINES})")]),
        Program::Cargo => command.args(["--test", MACHINES_TARGET]),
    };
    cmd::run(command.args(runner.arguments(runner_args)))
}

/// Returns the command for the privileged tests: this user builds them, and sudo runs each of them.
fn privileged(project: &Project, runner: &Runner) -> Result<Command> {
    cmd::require("sudo", "the end-to-end tests need root: run `cargo xtask test` as root")?;
    // Asks for the password now, when the user sees the prompt.
    cmd::run(Command::new("sudo").arg("--validate"))
        .context("the end-to-end tests need root: run `cargo xtask test` as root")?;
    let variables = project.variables().map(|(name, _)| name).join(",");
    let mut command = runner.command(project);
    command
        .args(PRIVILEGED.iter().flat_map(|package| ["--package", package]))
        .env(
            format!("CARGO_TARGET_{}_RUNNER", target_name()),
            format!("sudo --preserve-env={variables},{LONG},{RESULTS},NEXTEST,RUST_BACKTRACE,TRACER_PAUSE_LIMIT,UPDATE_BASELINES"),
        );
    Ok(command)
}

/// Returns this machine's target in the form for names of variables.
fn target_name() -> String {
    format!(
        "{}_UNKNOWN_LINUX_{}",
        env::consts::ARCH,
        if cfg!(target_env = "musl") { "musl" } else { "gnu" }
    )
    .to_uppercase()
}

/// The program that runs the tests.
struct Runner {
    program: Program,
    /// The file of results, if runs are to be long.
    results: Option<PathBuf>,
}

/// The kind of program.
enum Program {
    Nextest,
    Cargo,
}

impl Runner {
    /// Returns nextest if it is installed, otherwise cargo.
    fn find(length: Length, project: &Project) -> Self {
        Self {
            program: if cmd::find("cargo-nextest").is_some() {
                Program::Nextest
            } else {
                Program::Cargo
            },
            results: (length == Length::Long).then(|| results(project)),
        }
    }

    fn command(&self, project: &Project) -> Command {
        let mut command = cargo::workspace(project);
        command.envs(project.variables()).env("TRACER_CACHE", project.cache());
        if env::var_os(SEED.0).is_none() {
            command.env(SEED.0, SEED.1);
        }
        match self.program {
            Program::Nextest => command.args(["nextest", "run"]),
            // Documentation tests run separately.
            Program::Cargo => command.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]),
        };
        if let Some(results) = &self.results {
            command.env(LONG, "1").env(RESULTS, results);
            if matches!(self.program, Program::Nextest) {
                // This profile gives tests more time.
                command.args(["--profile", "long"]);
            }
        }
        command
    }

    /// Returns the user's arguments in the form that the runner expects.
    fn arguments(&self, given: &[String]) -> Vec<String> {
        let separator = matches!(self.program, Program::Cargo) && !given.is_empty();
        separator
            .then(|| "--".to_owned())
            .into_iter()
            .chain(given.iter().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cargos_own_runner_needs_a_separator() {
        let given = ["name".to_owned()];
        let by = |program| Runner { program, results: None };
        assert_eq!(by(Program::Nextest).arguments(&given), ["name"]);
        assert_eq!(by(Program::Cargo).arguments(&given), ["--", "name"]);
        assert!(by(Program::Cargo).arguments(&[]).is_empty());
    }
}
