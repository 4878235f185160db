//! The GPU code objects that the bundled dispatcher launches.

use std::process::Command;

use anyhow::Result;

use super::{Job, cross::CrossBuild};
use crate::project::Project;

/// The processors to build for; tests/gpu-kernels/README.md names the GPUs.
pub const CPUS: [&str; 7] = [
    "gfx90a",
    "gfx942",
    "gfx950",
    "gfx1100",
    "gfx1201",
    "gfx9-4-generic",
    "gfx11-generic",
];

/// Returns the jobs that build `tests/gpu-kernels`, one per processor.
pub fn jobs<'a>(project: &'a Project, cpus: &'a [&'static str]) -> impl Iterator<Item = Job<'a>> {
    cpus.iter()
        .map(move |&cpu| Box::new(move || build(project, cpu)) as Job<'a>)
}

fn build(project: &Project, cpu: &str) -> Result<()> {
    cross(project, cpu).run(project, adjust(cpu))
}

/// Runs clippy over the crate, for one processor: the code is the same for all.
pub fn lint(project: &Project) -> Result<()> {
    let cpu = CPUS[0];
    cross(project, cpu).lint(project, adjust(cpu))
}

fn cross(project: &Project, cpu: &str) -> CrossBuild<'static> {
    let krate = project.root().join("tests/gpu-kernels");
    CrossBuild {
        sources: vec![krate.clone()],
        krate,
        target: "amdgcn-amd-amdhsa",
        target_dir: project.target().join("gpu-kernels-build").join(cpu),
        artifact: "gpu_kernels.elf",
        output: project.gpu_kernels().join(format!("{cpu}.co")),
        settings: flags(cpu),
    }
}

fn adjust(cpu: &str) -> impl FnOnce(&mut Command) {
    let flags = flags(cpu);
    move |cargo| {
        cargo.env("RUSTFLAGS", flags);
    }
}

/// Returns the compiler's flags. Exact processors get an object version that old runtimes load: 5 before ROCr 6.3, and 4 for HIP
/// 5.2, which knows no newer processor than gfx90a. Generic processors exist only in version 6.
fn flags(cpu: &str) -> String {
    let version = match cpu {
        generic if generic.ends_with("-generic") => "",
        "gfx90a" => " -Cllvm-args=--amdhsa-code-object-version=4",
        _ => " -Cllvm-args=--amdhsa-code-object-version=5",
    };
    format!("-Ctarget-cpu={cpu}{version}")
}

#[cfg(test)]
mod tests {
    use super::flags;

    #[test]
    fn exact_processors_get_the_version_that_old_runtimes_load() {
        assert_eq!(
            flags("gfx942"),
            "-Ctarget-cpu=gfx942 -Cllvm-args=--amdhsa-code-object-version=5"
        );
        assert_eq!(
            flags("gfx90a"),
            "-Ctarget-cpu=gfx90a -Cllvm-args=--amdhsa-code-object-version=4"
        );
        assert_eq!(flags("gfx11-generic"), "-Ctarget-cpu=gfx11-generic");
    }
}
