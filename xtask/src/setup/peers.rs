//! bpftrace and perf, with which the measurements compare tracer: a folder of Debian's packages, so that the system needs no change.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::folder::{Folder, Programs, write_launchers};
use crate::apt::Suite;
use crate::project::Project;

/// Debian's stable suite: bpftrace 0.23 and perf 6.12 (when this was written).
const SUITE: &str = "trixie";
/// The programs. Their dependencies are installed with them.
const PACKAGES: [&str; 2] = ["bpftrace", "linux-perf"];
/// The programs. Their launchers have the same names.
const PROGRAMS: [&str; 2] = ["bpftrace", "perf"];

/// The folder of the programs.
pub struct Peers {
    dir: PathBuf,
}

impl Peers {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.peers_dir(),
        }
    }
}

impl Programs for Peers {
    const NAME: &str = "bpftrace and perf";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            launchers: &PROGRAMS,
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_closure(&PACKAGES)
    }

    fn prepare(&self, unpacked: &Path) -> Result<()> {
        write_launchers(unpacked, &self.dir, &PROGRAMS)
    }
}
