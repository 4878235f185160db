//! Podman and Docker: a folder of Debian's packages with all that they need, so that the system needs no change.
//!
//! They start many other programs by paths, so that the folder is a whole root: `dist` runs them in a mount namespace in which it is `/`.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::folder::{self, Folder, Programs};
use crate::apt::Suite;
use crate::project::Project;

/// Debian's stable suite: Podman 5.4 and Docker 26.1 (when this was written).
const SUITE: &str = "trixie";
/// The engines, their helpers, and what every Debian has: a shell, and programs for mounts and networks. Their dependencies are installed with
/// them.
const PACKAGES: [&str; 10] = [
    "podman",
    "crun",
    "catatonit",
    "docker.io",
    "docker-cli",
    "docker-compose",
    "dash",
    "coreutils",
    "iproute2",
    "mount",
];

/// The folder of the engines.
pub struct Engines {
    dir: PathBuf,
}

impl Engines {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.engines_dir(),
        }
    }
}

impl Programs for Engines {
    const NAME: &str = "Podman and Docker";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            // They run with the folder as their root only, which takes root's rights.
            launchers: &[],
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_closure(&PACKAGES)
    }

    fn prepare(&self, unpacked: &Path) -> Result<()> {
        folder::create_root(unpacked)
    }
}
