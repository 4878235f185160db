//! The packages in containers of Podman and Docker, by the files of `packaging/containers`, beside programs on the simulated GPU.
//!
//! No image is downloaded: a new root folder of Debian takes the place of the one that `Containerfile` names.

mod engines;
mod recorders;
mod rows;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use self::engines::Engines;
use self::rows::Row;
use super::{Release, trial};
use crate::cmd;
use crate::project::Project;
use crate::setup::{self, Part};

/// The files that users of containers start from, in `packaging/containers`.
const FILES: [&str; 4] = [
    "Containerfile",
    "compose.yaml",
    "daemonset.yaml",
    "tracer-serve.container",
];
/// The image that `Containerfile` begins with.
const BASE: &str = "docker.io/library/debian:13-slim";
/// The image that `daemonset.yaml` names.
const CLUSTER_IMAGE: &str = concat!("registry.example/tracer:", env!("CARGO_PKG_VERSION"));
/// Dispatches of each program.
const DISPATCHES: &str = "200";
/// Where containers of programs find the simulated GPU. With the default rights of an engine, and no network.
const PROGRAM: [&str; 9] = [
    "--rm",
    "--network=none",
    "-v",
    "/dev/kfd:/dev/kfd",
    "-v",
    "/dev/dri:/dev/dri",
    "-v",
    "/sys:/sys:ro",
    "--entrypoint=hsa-dispatch",
];
/// The programs' arguments.
const WORKLOAD: [&str; 3] = ["compute-only", "-n", DISPATCHES];

/// Copies the files that users start from into a folder.
pub fn copy_files(project: &Project, into: &Path) -> Result<()> {
    for file in FILES {
        fs::copy(project.root().join("packaging/containers").join(file), into.join(file))?;
    }
    Ok(())
}

/// Tries the packages.
pub fn run(project: &Project, release: &Release) -> Result<()> {
    setup::run(project, &[Part::Engines])?;
    crate::build::simulation(project, crate::simulated::ASIC)?;
    let folder = project.target().join("dist-containers");
    cmd::remove_all(&folder)?;
    let trial = Trial::prepare(project, release, folder)?;
    let mut engines = Engines::start(project, &trial.folder, crate::simulated::ASIC, &trial.truth())?;
    trial.images(&engines)?;
    trial.doctor(&engines)?;
    trial.refusals(&engines)?;
    trial.records(&engines)?;
    trial.quadlet(&engines)?;
    trial.pod(&engines)?;
    trial.foreground(&engines)?;
    engines.start_docker(&trial.folder.join("dockerd.log"))?;
    trial.compose(&engines)?;
    drop(engines);
    cmd::remove_all(&trial.folder)
}

/// The files of a trial.
struct Trial {
    folder: PathBuf,
}

impl Trial {
    /// Makes a root folder with the package, an archive of it without the package, and a folder to build an image from.
    fn prepare(project: &Project, release: &Release, folder: PathBuf) -> Result<Self> {
        let root = trial::with_runtime(project, &folder)?;
        let mut tar = Command::new("tar");
        tar.arg("--create").arg("--file").arg(folder.join("base.tar"));
        cmd::run(tar.arg("--directory").arg(&root.path).arg("."))?;
        let package = release.out.join(format!("tracer_{}-1_amd64.deb", release.version));
        root.install(&package)?;
        let context = folder.join("context");
        fs::create_dir_all(&context)?;
        fs::create_dir_all(folder.join("out"))?;
        let name = package.file_name().context("the package's name")?;
        fs::copy(&package, context.join(name)).with_context(|| format!("no {}", package.display()))?;
        copy_files(project, &context)?;
        Ok(Self { folder })
    }

    fn truth(&self) -> PathBuf {
        self.folder.join("truth.jsonl")
    }

    /// Returns a path in the trial's folder, as an argument.
    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// Builds the image from what takes the place of Debian's.
    fn images(&self, engines: &Engines) -> Result<()> {
        engines.run(&["podman", "import", &self.path("base.tar"), BASE])?;
        let (file, context) = (self.path("context/Containerfile"), self.path("context"));
        engines.run(&[
            "podman",
            "build",
            "--network=none",
            "-t",
            "tracer",
            "-f",
            &file,
            &context,
        ])?;
        engines
            .run(&["podman", "tag", "localhost/tracer", CLUSTER_IMAGE])
            .map(drop)
    }

    fn program(&self, engines: &Engines, engine: &str, workload: &[&str]) -> Result<()> {
        let image = if engine == "podman" {
            "localhost/tracer"
        } else {
            "tracer"
        };
        engines
            .run(&[&[engine, "run"][..], &PROGRAM, &[image], workload].concat())
            .map(drop)
    }

    /// Returns what the simulator logged, once it is at rest.
    fn logged(&self) -> Result<Vec<Row>> {
        std::thread::sleep(std::time::Duration::from_millis(200));
        rows::logged(&self.truth())
    }
}
