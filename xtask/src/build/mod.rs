//! Builds the objects that the workspace embeds, then the workspace.

mod cross;
mod ebpf;
mod format;
mod gpu;
mod mock;
pub mod stable_names;

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};

use crate::cargo;
use crate::cmd;
use crate::imports;
use crate::project::Project;
use crate::setup::{self, BpfLinker, Part};
pub use mock::build as mock;

/// How to build the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Release,
}

impl Profile {
    /// Returns the folder of the programs, below the target folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// Builds the eBPF object, the GPU code objects and all programs of the workspace.
pub fn run(project: &Project, profile: Profile) -> Result<()> {
    everything(project, profile, &[])
}

/// Builds the same, and the examples.
pub fn with_examples(project: &Project, profile: Profile) -> Result<()> {
    everything(project, profile, &["--bins", "--lib", "--examples"])
}

fn everything(project: &Project, profile: Profile, targets: &[&str]) -> Result<()> {
    objects(project)?;
    let mut cargo = cargo::workspace(project);
    cargo
        .args(["build", "--workspace"])
        .args(targets)
        .envs(project.variables());
    if profile == Profile::Release {
        cargo.arg("--release");
    }
    cmd::run(&mut cargo)
}

/// Builds only what a run on the simulated GPU `cpu` needs, with the features that the workspace gives these packages: a later build
/// of the workspace builds none of them again.
pub fn simulation(project: &Project, cpu: &'static str) -> Result<()> {
    objects_for(project, &[cpu])?;
    let mut cargo = cargo::workspace(project);
    cargo.arg("build").envs(project.variables());
    for package in ["tracer-cli", "kfd-sim", "hsa-dispatch", "tracer-core"] {
        cargo.args(["--package", package]);
    }
    cmd::run(cargo.args(["--features", "tracer-core/sample"]))
}

/// Checks the format of all sources and the imports of modules, and runs clippy over everything. Warnings are errors.
pub fn lint(project: &Project) -> Result<()> {
    format::check(project)?;
    imports::check(project)?;
    objects(project)?;
    ebpf::lint(project, &BpfLinker::choose(project)?)?;
    gpu::lint(project)?;
    let mut cargo = cargo::workspace(project);
    cargo.args(["clippy", "--workspace", "--all-targets"]);
    cmd::run(cargo.envs(project.variables()).args(["--", "--deny", "warnings"]))?;
    // Without what can be left out of the program. Only the workspace as a whole has the dependencies that are checked already.
    let mut cargo = cargo::workspace(project);
    cargo.args(["clippy", "--workspace", "--no-default-features"]);
    cmd::run(cargo.envs(project.variables()).args(["--", "--deny", "warnings"]))
}

/// Builds the eBPF objects and the GPU code objects, if their sources changed.
pub fn objects(project: &Project) -> Result<()> {
    objects_for(project, &gpu::CPUS)
}

/// Builds the eBPF objects, and the GPU code objects for these processors, if their sources changed.
fn objects_for(project: &Project, cpus: &[&'static str]) -> Result<()> {
    setup::run(project, &Part::BUILD)?;
    let linker = BpfLinker::choose(project)?;
    let ebpf: Job<'_> = Box::new(|| ebpf::build(project, &linker));
    // The last job is started first, and this one takes longest.
    side_by_side(gpu::jobs(project, cpus).chain(std::iter::once(ebpf)))
}

/// A build that depends on no other.
type Job<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// Runs the jobs on all processors: each job compiles `core`, most of the time on one processor only.
///
/// Returns the first failure once the running jobs have ended. Jobs that had not started are skipped.
fn side_by_side<'a>(jobs: impl Iterator<Item = Job<'a>>) -> Result<()> {
    let waiting = Mutex::new(jobs.collect::<Vec<_>>());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some(job) = next() {
            job().inspect_err(|_| while next().is_some() {})?;
        }
        Ok(())
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let results: Vec<Result<()>> = workers.into_iter().map(join).collect();
        results.into_iter().collect()
    })
}

fn join(worker: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    match worker.join() {
        Ok(result) => result,
        Err(_) => bail!("a build ended in a panic"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_job_runs_and_a_failure_is_reported() {
        let runs = AtomicUsize::new(0);
        let count = |fails: bool| -> Job<'_> {
            let runs = &runs;
            Box::new(move || {
                runs.fetch_add(1, Ordering::Relaxed);
                if fails { bail!("no") } else { Ok(()) }
            })
        };
        side_by_side((0..20).map(|_| count(false))).unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 20);
        assert!(side_by_side((0..20).map(|_| count(true))).is_err());
    }
}
