//! All tests: as root in one go, otherwise the end-to-end tests under sudo.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::build::{self, Profile};
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};

/// The package whose tests load eBPF programs and mount file systems.
const PRIVILEGED: &str = "tracer-e2e";

/// The package whose tests boot kernels, and their only target.
const MACHINES: &str = "tracer-vm";
const MACHINES_TARGET: &str = "vm";

/// Where the property tests' random numbers begin, unless the caller says otherwise: what a change breaks must not depend
/// on luck. To look for more: `PROPTEST_RNG_SEED=$RANDOM PROPTEST_CASES=15000 cargo xtask test -- garbage reconstruction`.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261122");

/// Builds everything and runs the tests.
pub fn run(project: &Project, runner_args: &[String]) -> Result<()> {
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
    let runner = Runner::find();
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
                .args(["--workspace", "--exclude", PRIVILEGED])
                .args(&left_out)
                .args(runner.arguments(runner_args)),
        )?;
        cmd::run(privileged(project, &runner)?.args(runner.arguments(runner_args)))?;
    }
    if runner_args.is_empty() {
        cmd::run(
            cmd::cargo(project)
                .args(["test", "--workspace", "--doc"])
                .envs(project.variables()),
        )?;
    }
    Ok(())
}

/// Builds everything and runs the tests in virtual machines only.
pub fn run_in_machines(project: &Project, runner_args: &[String]) -> Result<()> {
    setup::run(project, &Part::ALL)?;
    setup::run(project, &[Part::Vm])?;
    build::run(project, Profile::Dev)?;
    build::mock(project)?;
    let runner = Runner::find();
    // Not by the package: its own set of features would compile everything below it anew.
    let mut command = runner.command(project);
    command.arg("--workspace");
    match runner {
        Runner::Nextest => command.args(["-E", &format!("package({MACHINES})")]),
        Runner::Cargo => command.args(["--test", MACHINES_TARGET]),
    };
    cmd::run(command.args(runner.arguments(runner_args)))
}

/// The privileged tests: built by this user, each run by sudo.
fn privileged(project: &Project, runner: &Runner) -> Result<Command> {
    cmd::require("sudo", "the end-to-end tests need root: run `cargo xtask test` as root")?;
    // Asks for the password now, where a person sees it.
    cmd::run(Command::new("sudo").arg("--validate"))
        .context("the end-to-end tests need root: run `cargo xtask test` as root")?;
    let variables = project.variables().map(|(name, _)| name).join(",");
    let mut command = runner.command(project);
    command.args(["--package", PRIVILEGED]).env(
        format!("CARGO_TARGET_{}_RUNNER", target_name()),
        format!("sudo --preserve-env={variables},NEXTEST,RUST_BACKTRACE"),
    );
    Ok(command)
}

/// This machine's target as it stands in names of variables.
fn target_name() -> String {
    format!(
        "{}_UNKNOWN_LINUX_{}",
        env::consts::ARCH,
        if cfg!(target_env = "musl") { "musl" } else { "gnu" }
    )
    .to_uppercase()
}

/// Which program runs the tests.
enum Runner {
    Nextest,
    Cargo,
}

impl Runner {
    /// The better one, if it is installed.
    fn find() -> Self {
        if cmd::find("cargo-nextest").is_some() {
            Self::Nextest
        } else {
            Self::Cargo
        }
    }

    fn command(&self, project: &Project) -> Command {
        let mut command = cmd::cargo(project);
        command.envs(project.variables()).env("TRACER_CACHE", project.cache());
        if env::var_os(SEED.0).is_none() {
            command.env(SEED.0, SEED.1);
        }
        match self {
            Self::Nextest => command.args(["nextest", "run"]),
            // Documentation tests have their own turn.
            Self::Cargo => command.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]),
        };
        command
    }

    /// The user's arguments where the runner expects them.
    fn arguments(&self, given: &[String]) -> Vec<String> {
        let separator = matches!(self, Self::Cargo) && !given.is_empty();
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
        assert_eq!(Runner::Nextest.arguments(&given), ["name"]);
        assert_eq!(Runner::Cargo.arguments(&given), ["--", "name"]);
        assert!(Runner::Cargo.arguments(&[]).is_empty());
    }
}
