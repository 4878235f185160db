//! Folders with AMD's runtime and all its dependencies, unpacked from Debian's packages.
//!
//! The simulated GPU runs programs in them. They contain the files of the packages, whose scripts have not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Install, folder};
use crate::apt::{Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// Debian's stable suite, which the demonstration uses: ROCr 6.1.2 (when this was written), HIP 5.7.1.
const STABLE: &str = "trixie";
/// The suite with the newest C library that runs on any machine: ROCr 6.4.3, HIP 6.4.3.
const NEWEST: &str = "sid";
/// Every suite, one for each release of the runtimes. The suites before and after the two above have ROCr and HIP 5.2.3, and 7.2.4.
const SUITES: [&str; 4] = ["bookworm", STABLE, NEWEST, "experimental"];
/// The packages in each folder, which come with all their dependencies.
const HSA: [&str; 2] = ["libhsa-runtime64-1", "rocminfo"];
/// The package that names the HIP library, whose name differs in each release.
const HIP_DEV: &str = "libamdhip64-dev";
const HIP: &str = "libamdhip64";

/// A folder for one suite.
pub struct Rootfs {
    suite: &'static str,
    /// Whether the folder contains HIP. HIP has a separate folder, because it brings LLVM, which most uses do not need.
    hip: bool,
    dir: PathBuf,
}

impl Rootfs {
    /// Returns two folders for each suite: the HSA runtime alone, and with HIP.
    pub fn all(project: &Project) -> impl Iterator<Item = Self> {
        let both = SUITES.into_iter().flat_map(|suite| [(suite, false), (suite, true)]);
        both.map(|(suite, hip)| Self::new(project, suite, hip))
    }

    /// Returns the folder that the demonstration uses.
    pub fn stable(project: &Project) -> Self {
        Self::new(project, STABLE, false)
    }

    /// Returns the folder of the same suite with HIP.
    pub fn stable_with_hip(project: &Project) -> Self {
        Self::new(project, STABLE, true)
    }

    /// Returns the folder whose C library runs programs built with new headers.
    pub fn newest(project: &Project) -> Self {
        Self::new(project, NEWEST, false)
    }

    fn new(project: &Project, suite: &'static str, hip: bool) -> Self {
        let name = if hip { format!("{suite}-hip") } else { suite.to_owned() };
        Self {
            suite,
            hip,
            dir: project.rootfs_dir().join(name),
        }
    }

    /// Returns the path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the packages to request from the suite.
    fn packages(&self, suite: &Suite) -> Result<Vec<String>> {
        let mut packages: Vec<String> = HSA.map(str::to_owned).into();
        if self.hip {
            let needed = suite.depends(HIP_DEV)?;
            let library = hip_library(&needed)
                .with_context(|| format!("{HIP_DEV} of Debian {} needs no {HIP}: {needed:?}", self.suite))?;
            packages.push(library.to_owned());
        }
        Ok(packages)
    }

    /// Returns the marker's first line. A different request needs a new folder.
    fn request(&self) -> String {
        let hip = if self.hip { [HIP].as_slice() } else { &[] };
        folder::request(&[&HSA, hip].concat())
    }

    fn unpack(&self, packages: &[PathBuf], into: &Path) -> Result<()> {
        folder::create_root(into)?;
        folder::unpack(packages, into)
    }

    /// Lets the folder's own loader resolve the libraries of a program in it. Needs no privileges.
    fn check(&self, dir: &Path) -> Result<()> {
        let libraries = dir.join(folder::LIBRARIES);
        let mut wanted = vec![dir.join("usr/bin/rocminfo"), libraries.join("libhsa-runtime64.so.1")];
        if self.hip {
            wanted.push(hip_file(&libraries)?);
        }
        for file in wanted {
            let mut loader = Command::new(libraries.join("ld-linux-x86-64.so.2"));
            loader.arg("--library-path").arg(&libraries).arg("--list").arg(&file);
            let list = cmd::read(&mut loader).context("the unpacked runtime cannot be loaded")?;
            if list.contains("not found") {
                bail!("{} lacks libraries: {list}", file.display());
            }
        }
        Ok(())
    }
}

impl Install for Rootfs {
    fn name(&self) -> String {
        let what = if self.hip {
            "HIP and the HSA runtime"
        } else {
            "the HSA runtime"
        };
        format!("{what} of Debian {}", self.suite)
    }

    fn is_ready(&self) -> bool {
        folder::is_marked(&self.dir, &self.request())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, self.suite)?;
        let packages = suite.download_closure(&self.packages(&suite)?)?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        self.unpack(&packages, &partial).with_context(|| {
            format!(
                "cannot unpack into {}: check the free space and that it is yours",
                partial.display()
            )
        })?;
        self.check(&partial)?;
        folder::complete(&partial, &self.dir, &self.request(), &packages)?;
        suite.close()
    }
}

/// Returns the HIP library among the dependencies of its development package: the name with the number of its interface.
fn hip_library(needed: &[String]) -> Option<&str> {
    let numbered = |name: &&str| {
        let number = name.strip_prefix(HIP).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    needed.iter().map(String::as_str).find(numbered)
}

/// Returns the HIP library in a folder of libraries, by the name that programs load: `libamdhip64.so.N`.
fn hip_file(libraries: &Path) -> Result<PathBuf> {
    let prefix = format!("{HIP}.so.");
    for entry in fs::read_dir(libraries)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(&prefix).is_some_and(|number| !number.contains('.')) {
            return Ok(libraries.join(name));
        }
    }
    bail!("the unpacked HIP has no {prefix}N in {}", libraries.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hip_library_is_the_numbered_one() {
        let needed = ["hipcc", "libamdhip64-dev", "libamdhip64-6", "libhiprtc6"].map(str::to_owned);
        assert_eq!(hip_library(&needed), Some("libamdhip64-6"));
        assert_eq!(hip_library(&needed[..2]), None);
    }
}
