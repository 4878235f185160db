//! Programs from crates.io, built into the cache's folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Install;
use crate::cargo;
use crate::cmd;
use crate::project::Project;

/// A program of a crate with its name, in one release.
pub struct Tool {
    name: &'static str,
    release: &'static str,
    /// The folder below which it is installed.
    root: PathBuf,
}

impl Tool {
    /// Returns the program in the project's cache.
    pub fn of(project: &Project, name: &'static str, release: &'static str) -> Self {
        Self {
            name,
            release,
            root: project.cache().join(format!("tools/{name}-{release}")),
        }
    }

    /// Returns the path of the program.
    pub fn program(&self) -> PathBuf {
        self.root.join("bin").join(self.name)
    }
}

impl Install for Tool {
    fn name(&self) -> String {
        format!("{} {}", self.name, self.release)
    }

    fn is_ready(&self) -> bool {
        cmd::is_executable(&self.program())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let build = project.cache().join("tools/build");
        let mut cargo = cargo::plain(project);
        // In the root folder cargo finds no project's configuration.
        cargo.current_dir(Path::new("/")).env("CARGO_TARGET_DIR", &build);
        // These programs run for seconds and are built for minutes. To optimize bpf-linker more than doubles the time of its build, and
        // makes no link faster, because LLVM does its work.
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        cargo
            .args(["install", "--locked", "--version", self.release, self.name, "--root"])
            .arg(&self.root);
        cmd::run(&mut cargo)
            .with_context(|| format!("cannot build {}: check the network and run the step again", self.name))?;
        cmd::remove_all(&build)
    }
}
