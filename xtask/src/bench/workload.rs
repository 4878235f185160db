//! The dispatcher on a simulated GPU, alone and recorded.

use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use super::Place;
use crate::{cmd, simulated};

/// Returns the command that records what follows it.
pub fn record(place: &Place<'_>, trace: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(place.programs.join("tracer"));
    command.args(["record", "--overwrite", "--as-root"]).args(options);
    command.arg("-o").arg(trace).arg("--");
    command
}

/// Appends the dispatcher's command, without a workload, to a command that starts it.
pub fn before_dispatcher(place: &Place<'_>, mut command: Command) -> Command {
    starts(&mut command, &simulated::dispatcher(place.project, &place.programs));
    command
}

/// Appends a program with its arguments, and sets its environment.
pub fn starts(command: &mut Command, program: &Command) {
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Returns the number that a query of one value prints.
pub fn queried<T: FromStr>(place: &Place<'_>, trace: &Path, query: &str) -> Result<T> {
    let mut tracer = Command::new(place.programs.join("tracer"));
    tracer.arg("query").arg(trace).args([query, "--format", "csv"]);
    let printed = cmd::read(&mut tracer)?;
    let number = printed.lines().nth(1).and_then(|line| line.parse().ok());
    number.with_context(|| format!("{query}: no number: {printed}"))
}

/// Checks that what runs with a probe takes longer than alone, by the least time of a probe, ns. Otherwise nothing was attached.
pub fn all_attached<const N: usize>(alone_ns: f64, ways: [(&str, f64); N]) -> Result<()> {
    for (way, ns) in ways {
        ensure!(ns > alone_ns + LEAST, "{way} was not attached");
    }
    Ok(())
}

/// A submission, from the reservation of a packet to the return from its doorbell, takes this much longer at least with a probe, ns.
const LEAST: f64 = 100.0;

/// Runs a dispatcher's command with the workload `burst`, and returns the dispatcher's own report.
pub fn burst(place: &Place<'_>, mut command: Command, dispatches: u32) -> Result<serde_json::Value> {
    let report = place.dir.join("did.json");
    let dispatches = dispatches.to_string();
    cmd::run(command.arg("--json").arg(&report).args(["burst", "-n", &dispatches]))?;
    let text = std::fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// The dispatcher through HIP.
pub mod with_hip {
    use std::path::PathBuf;
    use std::process::Command;

    use super::Place;
    use crate::setup::Rootfs;
    use crate::simulated;

    /// Returns the folder of Debian's with HIP.
    pub fn root(place: &Place<'_>) -> PathBuf {
        Rootfs::stable_with_hip(place.project).dir().to_owned()
    }

    /// Returns the dispatcher's command, without a workload.
    pub fn alone(place: &Place<'_>) -> Command {
        let mut command = simulated::dispatcher_in(&root(place), place.project, &place.programs);
        command.args(["--api", "hip"]);
        command
    }

    /// Appends the same to a command that starts it.
    pub fn after(place: &Place<'_>, mut command: Command) -> Command {
        super::starts(&mut command, &alone(place));
        command
    }
}
