//! Builds what the workspace carries inside, then the workspace.

mod cross;
mod ebpf;
mod gpu;

use anyhow::Result;

use crate::cmd;
use crate::project::Project;
use crate::setup::{self, BpfLinker, Part};

/// How to build the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Release,
}

/// Builds the eBPF object, the GPU code objects and all programs of the workspace.
pub fn run(project: &Project, profile: Profile) -> Result<()> {
    objects(project)?;
    let mut cargo = cmd::cargo(project);
    cargo.args(["build", "--workspace"]).envs(project.variables());
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    cmd::run(&mut cargo)
}

/// Builds the eBPF object and the GPU code objects, as far as their sources changed.
fn objects(project: &Project) -> Result<()> {
    setup::run(project, &Part::BUILD)?;
    ebpf::build(project, &BpfLinker::choose(project)?)?;
    gpu::build(project)
}
