//! The dispatcher on a simulated GPU, alone and recorded.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

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
    let program = simulated::dispatcher(place.project, &place.programs);
    command.arg(program.get_program()).args(program.get_args());
    command
}

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
        let program = alone(place);
        command.arg(program.get_program()).args(program.get_args());
        command
    }
}
