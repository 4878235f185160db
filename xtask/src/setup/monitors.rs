//! Prometheus and its promtool: a folder of Debian's packages, so that the system needs no change.
//!
//! Both are run by the folder's own loader, not in a chroot: what they read and write can lie anywhere, and nothing has
//! to be mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Install;
use super::rootfs::marker;
use super::vm::write_script;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// Debian's stable suite: Prometheus 2.53 (when this was written).
const SUITE: &str = "trixie";
/// The programs, and what they load. The rest of what they depend on makes a system service with a web page of it.
const PACKAGES: [&str; 3] = ["prometheus", "promtool", "libc6"];
/// The programs, of the same names as their launchers.
const PROGRAMS: [&str; 2] = ["prometheus", "promtool"];
/// Where libraries are in a folder of packages.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Written last; names what was asked for and what was unpacked.
const MARKER: &str = ".complete";

/// The folder.
pub struct Monitors {
    dir: PathBuf,
}

impl Monitors {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.monitors_dir(),
        }
    }

    /// The marker's first line: another request means another folder.
    fn request() -> String {
        format!("packages: {}", PACKAGES.join(" "))
    }

    /// Writes scripts that run the programs by the folder's own loader, in the place where the folder will lie.
    fn write_launchers(&self, unpacked: &Path) -> Result<()> {
        let dir = cmd::shell_quote(&self.dir.to_string_lossy());
        for program in PROGRAMS {
            let script = format!(
                "#!/bin/sh\n\
                 # Runs {program} with the C library of its own release. Written by cargo xtask setup.\n\
                 exec {dir}/{LIBRARIES}/ld-linux-x86-64.so.2 --library-path {dir}/{LIBRARIES} {dir}/usr/bin/{program} \"$@\"\n"
            );
            write_script(&unpacked.join(program), &script)?;
        }
        Ok(())
    }
}

impl Install for Monitors {
    fn name(&self) -> String {
        format!("Prometheus of Debian {SUITE}")
    }

    fn is_ready(&self) -> bool {
        let marker = fs::read_to_string(self.dir.join(MARKER)).unwrap_or_default();
        marker.lines().next() == Some(Self::request().as_str())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, SUITE)?;
        let packages = suite.download_only(&PACKAGES.map(str::to_owned))?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        eprintln!("==> unpacking {} packages", packages.len());
        for package in &packages {
            apt::unpack(package, &partial)?;
        }
        self.write_launchers(&partial)?;
        fs::write(partial.join(MARKER), marker(&Self::request(), &packages))?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        // The launchers name the final place, so only there can they be tried.
        for program in PROGRAMS {
            if let Err(error) = cmd::read(Command::new(self.dir.join(program)).arg("--version")) {
                cmd::remove_all(&self.dir.join(MARKER))?;
                bail!("the unpacked {program} does not start: {error:#}");
            }
        }
        suite.close()
    }
}
