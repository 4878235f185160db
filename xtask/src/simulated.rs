//! The dispatcher on a simulated GPU, as the demonstration and the measurements run it.

use std::path::Path;
use std::process::Command;

use crate::project::Project;
use crate::setup::Rootfs;

/// The simulated processor, whose driver schedules with MES.
pub const ASIC: &str = "gfx1100";

/// Returns the command of the dispatcher on a simulated GPU, without a workload; `programs` is the folder of both programs.
pub fn dispatcher(project: &Project, programs: &Path) -> Command {
    dispatcher_in(Rootfs::stable(project).dir(), project, programs)
}

/// Returns the same in another folder of Debian's.
pub fn dispatcher_in(root: &Path, project: &Project, programs: &Path) -> Command {
    let mut command = Command::new(programs.join("kfd-sim"));
    command.arg("--root").arg(root);
    command.args(["--asic", ASIC, "--kernels"]).arg(project.gpu_kernels());
    command.arg("--bind").arg(project.target()).arg("--");
    command.arg(programs.join("hsa-dispatch"));
    command.arg("--kernels").arg(project.gpu_kernels());
    command
}
