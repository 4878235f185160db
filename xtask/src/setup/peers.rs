//! bpftrace and perf, with which the measurements compare tracer: a folder of Debian's packages, so that the system needs no change.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::folder::{Folder, LIBRARIES, Programs, write_script};
use crate::apt::Suite;
use crate::cmd;
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

    /// Writes scripts that run the programs by the folder's own loader, from the folder's final place. The commands that they start
    /// see no path of the folder.
    fn prepare(&self, unpacked: &Path) -> Result<()> {
        let dir = cmd::shell_quote(&self.dir.to_string_lossy());
        for program in PROGRAMS {
            let script = format!(
                "#!/bin/sh\n\
                 # Runs {program} with the libraries of its own release. Written by cargo xtask setup.\n\
                 exec {dir}/{LIBRARIES}/ld-linux-x86-64.so.2 --library-path {dir}/{LIBRARIES} {dir}/usr/bin/{program} \"$@\"\n"
            );
            write_script(&unpacked.join(program), &script)?;
        }
        Ok(())
    }
}
