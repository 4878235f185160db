//! Prometheus, its promtool, and VictoriaMetrics: a folder of Debian's packages, so that the system needs no change.
//!
//! Debian's Prometheus is built without its receiver of OTLP, so VictoriaMetrics takes what `tracer serve --otlp` pushes.
//!
//! The folder's own loader runs them, not in a chroot: the files that they read and write can be anywhere, and nothing has to be
//! mounted.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::folder::{Folder, Programs, write_launchers};
use crate::apt::Suite;
use crate::project::Project;

/// Debian's stable suite: Prometheus 2.53 and VictoriaMetrics 1.112 (when this was written).
const SUITE: &str = "trixie";
/// The programs, and the libraries that they load. Their other dependencies make system services of them, Prometheus with a web
/// page.
const PACKAGES: [&str; 5] = ["prometheus", "promtool", "victoria-metrics", "libzstd1", "libc6"];
/// The programs. Their launchers have the same names.
const PROGRAMS: [&str; 3] = ["prometheus", "promtool", "victoria-metrics"];

/// The folder of the programs.
pub struct Monitors {
    dir: PathBuf,
}

impl Monitors {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.monitors_dir(),
        }
    }
}

impl Programs for Monitors {
    const NAME: &str = "Prometheus and VictoriaMetrics";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            launchers: &PROGRAMS,
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        suite.download_only(&PACKAGES.map(str::to_owned))
    }

    fn prepare(&self, unpacked: &Path) -> Result<()> {
        write_launchers(unpacked, &self.dir, &PROGRAMS)
    }
}
