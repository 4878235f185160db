//! Demonstrates tracer without a GPU: AMD's runtime runs on the simulated GPU, and tracer records and reports it.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::build;
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};
use crate::simulated;

/// A script that runs its arguments once with each workload of the dispatcher.
const WORKLOADS: &str = r#"for workload in mixed "burst -n 20000"; do "$@" $workload; done"#;

/// Builds everything, records the dispatcher's workloads and prints the report.
pub fn run(project: &Project) -> Result<()> {
    let started = Instant::now();
    setup::run(project, &Part::DEMO)?;
    build::simulation(project, simulated::ASIC)?;
    let tracer = project.bin_dir().join("tracer");
    let trace = project.target().join("demo/demo.trace");
    cmd::remove_all(&trace)?;
    std::fs::create_dir_all(project.target().join("demo"))?;
    cmd::run(&mut record(project, &tracer, &trace)?)?;
    cmd::run(Command::new(&tracer).arg("report").arg(&trace))?;
    eprintln!(
        "==> recorded {} and reported in {:.1} s",
        trace.display(),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn record(project: &Project, tracer: &Path, trace: &Path) -> Result<Command> {
    let mut command = as_root(tracer)?;
    command.args(["record", "-o"]).arg(trace);
    if !cmd::is_root()? || env::var_os("SUDO_UID").is_some() {
        // The simulator mounts file systems: it must stay root where tracer would switch to sudo's user.
        command.arg("--as-root");
    }
    command.args(["--", "/bin/sh", "-ec", WORKLOADS, "demo"]);
    let program = simulated::dispatcher(project, &project.bin_dir());
    command.arg(program.get_program()).args(program.get_args());
    Ok(command)
}

/// Returns a command that runs a program as root, under sudo if this program does not run as root.
fn as_root(program: &Path) -> Result<Command> {
    if cmd::is_root()? {
        return Ok(Command::new(program));
    }
    cmd::require("sudo", "recording needs root: run `cargo xtask demo` as root")?;
    let mut sudo = Command::new("sudo");
    sudo.arg(program);
    Ok(sudo)
}
