//! Demonstrates tracer without a GPU: AMD's runtime runs on the simulated GPU, and tracer records and reports it.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::build;
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part, Rootfs};

/// The simulated processor, whose driver schedules with MES.
const ASIC: &str = "gfx1100";

/// A script that runs its arguments once with each workload of the dispatcher.
const WORKLOADS: &str = r#"for workload in mixed "burst -n 20000"; do "$@" $workload; done"#;

/// Builds everything, records the dispatcher's workloads and prints the report.
pub fn run(project: &Project) -> Result<()> {
    let started = Instant::now();
    setup::run(project, &Part::DEMO)?;
    build::simulation(project, ASIC)?;
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
    command
        .arg(project.bin_dir().join("kfd-sim"))
        .arg("--root")
        .arg(Rootfs::stable(project).dir());
    command.args(["--asic", ASIC, "--kernels"]).arg(project.gpu_kernels());
    command.arg("--bind").arg(project.target());
    command
        .arg("--")
        .arg(project.bin_dir().join("hsa-dispatch"))
        .arg("--kernels")
        .arg(project.gpu_kernels());
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
