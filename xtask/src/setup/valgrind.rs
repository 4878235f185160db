//! Callgrind of Valgrind, with which a test counts the instructions of a program: a folder of Debian's package, so that the system
//! needs no change.
//!
//! The tool itself is a static program. It runs without Valgrind's script, which chooses a tool by the program's processor.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::folder::{Folder, Programs};
use crate::apt::Suite;
use crate::project::Project;

/// Debian's stable suite: Valgrind 3.24 (when this was written).
const SUITE: &str = "trixie";
const PACKAGES: [&str; 1] = ["valgrind"];
/// The folder of the package's tools.
const TOOLS: &str = "usr/libexec/valgrind";

/// The folder of Callgrind.
pub struct Valgrind {
    dir: PathBuf,
}

impl Valgrind {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.valgrind_dir(),
        }
    }
}

impl Programs for Valgrind {
    const NAME: &str = "Callgrind";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            // The tool starts only with the variables that Valgrind's script sets.
            launchers: &[],
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_only(&PACKAGES.map(str::to_owned))
    }

    /// Removes the other tools, which are most of the package.
    fn prepare(&self, unpacked: &Path) -> Result<()> {
        let tools = unpacked.join(TOOLS);
        let entries = fs::read_dir(&tools).with_context(|| format!("cannot read {}", tools.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_needed =
                name.starts_with("callgrind-amd64") || name.contains("core-amd64") || name.ends_with(".supp");
            if !is_needed && entry.file_type()?.is_file() {
                fs::remove_file(entry.path()).with_context(|| format!("cannot remove {name}"))?;
            }
        }
        Ok(())
    }
}
