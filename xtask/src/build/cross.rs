//! A crate outside the workspace, built for another target together with its own `core`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::stable_names;
use crate::cargo;
use crate::cmd;
use crate::project::{Project, Toolchain};

/// What to build, and the path of the result.
pub struct CrossBuild<'a> {
    /// The folder of the crate.
    pub krate: PathBuf,
    /// All folders whose files go into the result.
    pub sources: Vec<PathBuf>,
    /// The name of the target.
    pub target: &'a str,
    /// Cargo's target folder. Builds with different flags do not share it: each would rebuild `core`.
    pub target_dir: PathBuf,
    /// The name of the linked file below the target's folder.
    pub artifact: &'a str,
    /// The path to copy it to.
    pub output: PathBuf,
    /// Other inputs of the result: flags and tools.
    pub settings: String,
}

impl CrossBuild<'_> {
    /// Builds the crate unless nothing changed since the last build; `adjust` adds flags and variables.
    pub fn run(&self, project: &Project, adjust: impl FnOnce(&mut Command)) -> Result<()> {
        let stamp = self.output.with_extension("stamp");
        let fingerprint = self.fingerprint(project.toolchain())?;
        if self.output.is_file() && fs::read_to_string(&stamp).is_ok_and(|last| last == fingerprint) {
            return Ok(());
        }
        let mut cargo = self.cargo(project, "build")?;
        adjust(&mut cargo);
        cmd::run(&mut cargo)?;
        self.publish()?;
        fs::write(&stamp, fingerprint).with_context(|| format!("cannot write {}", stamp.display()))
    }

    /// Runs clippy over the crate, with the build's own flags. Warnings are errors.
    pub fn lint(&self, project: &Project, adjust: impl FnOnce(&mut Command)) -> Result<()> {
        let mut cargo = self.cargo(project, "clippy")?;
        adjust(&mut cargo);
        cmd::run(cargo.args(["--", "--deny", "warnings"]))
    }

    fn cargo(&self, project: &Project, subcommand: &str) -> Result<Command> {
        let mut cargo = cargo::plain(project);
        // Enables nightly features on a stable compiler: these targets have no prebuilt `core`.
        cargo
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", &self.target_dir)
            .current_dir(&self.krate);
        cargo.args([subcommand, "--release", "-Z", "build-std=core", "--target", self.target]);
        stable_names::adjust(&mut cargo)?;
        Ok(cargo)
    }

    /// Copies the linked file to its place, unless it is already there: later builds depend on its age.
    fn publish(&self) -> Result<()> {
        let built = self.target_dir.join(self.target).join("release").join(self.artifact);
        let content = fs::read(&built).with_context(|| format!("the build left no {}", built.display()))?;
        if fs::read(&self.output).is_ok_and(|old| old == content) {
            return Ok(());
        }
        let folder = self.output.parent().context("the output has no folder")?;
        let partial = self.output.with_extension("partial");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&partial, content))
            .and_then(|()| fs::rename(&partial, &self.output))
            .with_context(|| format!("cannot write {}", self.output.display()))
    }

    /// Returns a value that changes whenever the compiler, the settings or a source file changes.
    fn fingerprint(&self, toolchain: &Toolchain) -> Result<String> {
        let mut files = Vec::new();
        for source in &self.sources {
            collect_files(source, &mut files)?;
        }
        files.sort();
        let mut hasher = DefaultHasher::new();
        let fixed = (
            &toolchain.description,
            self.target,
            &self.settings,
            stable_names::VERSION,
        );
        fixed.hash(&mut hasher);
        for file in &files {
            let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            (file, content).hash(&mut hasher);
        }
        Ok(format!("{:016x}\n", hasher.finish()))
    }
}

/// Lists the files of a crate, without those that cargo created.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_file() => files.push(entry.path()),
            kind if kind.is_dir() && entry.file_name() != "target" => collect_files(&entry.path(), files)?,
            _ => {}
        }
    }
    Ok(())
}
