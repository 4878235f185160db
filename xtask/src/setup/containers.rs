//! crun, which runs and removes containers as podman does: a folder of Debian's packages, so that the system needs no change.
//!
//! It starts itself again from its own file, so that only the machine's loader can run it. So it is from the oldest suite, and its
//! folder contains every library except the C library.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::folder::{Folder, LIBRARIES, Programs, write_script};
use crate::apt::Suite;
use crate::cmd;
use crate::project::Project;

/// The oldest suite that is used: crun 1.8.
const SUITE: &str = "bookworm";
/// The program, and the libraries that it loads.
const PACKAGES: [&str; 10] = [
    "crun",
    "libcap2",
    "libgcrypt20",
    "libgpg-error0",
    "liblz4-1",
    "liblzma5",
    "libseccomp2",
    "libsystemd0",
    "libyajl2",
    "libzstd1",
];
const PROGRAM: &str = "crun";
/// The folder of the libraries in some packages of that suite.
const OLD_LIBRARIES: &str = "lib/x86_64-linux-gnu";

/// The folder of crun.
pub struct Containers {
    dir: PathBuf,
}

impl Containers {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.containers_dir(),
        }
    }
}

impl Programs for Containers {
    const NAME: &str = "crun";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            launchers: &[PROGRAM],
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_only(&PACKAGES.map(str::to_owned))
    }

    /// Writes a script that finds the folder's libraries in the folder's final place.
    fn prepare(&self, unpacked: &Path) -> Result<()> {
        let dir = cmd::shell_quote(&self.dir.to_string_lossy());
        let script = format!(
            "#!/bin/sh\n\
             # Runs crun with libraries of its own release. Written by cargo xtask setup.\n\
             export LD_LIBRARY_PATH={dir}/{LIBRARIES}:{dir}/{OLD_LIBRARIES}\n\
             exec {dir}/usr/bin/{PROGRAM} \"$@\"\n"
        );
        write_script(&unpacked.join(PROGRAM), &script)
    }
}
