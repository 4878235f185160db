//! Folders that hold AMD's runtime and all it needs, unpacked from Debian's packages.
//!
//! The simulated GPU runs programs in them. Files of the packages are there, their scripts have not run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Install;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// Debian's stable suite, which the demonstration uses: ROCr 6.1.2 (when this was written), HIP 5.7.1.
const STABLE: &str = "trixie";
/// The suite with the newest C library that runs on any machine: ROCr 6.4.3, HIP 6.4.3.
const NEWEST: &str = "sid";
/// Every suite, one for each release of the runtimes; before and after the two above: ROCr and HIP 5.2.3, and 7.2.4.
const SUITES: [&str; 4] = ["bookworm", STABLE, NEWEST, "experimental"];
/// What goes into each folder, with all that it depends on.
const HSA: [&str; 2] = ["libhsa-runtime64-1", "rocminfo"];
/// The library goes by a name of its own in each release, which this package tells.
const HIP_DEV: &str = "libamdhip64-dev";
const HIP: &str = "libamdhip64";
/// Written last; names what was asked for and what was unpacked.
const MARKER: &str = ".complete";

/// A folder for one suite.
pub struct Rootfs {
    suite: &'static str,
    /// With HIP, in a folder of its own: it brings LLVM, which most uses can do without.
    hip: bool,
    dir: PathBuf,
}

impl Rootfs {
    /// Two folders for each suite: the HSA runtime alone, and with HIP.
    pub fn all(project: &Project) -> impl Iterator<Item = Self> {
        let both = SUITES.into_iter().flat_map(|suite| [(suite, false), (suite, true)]);
        both.map(|(suite, hip)| Self::new(project, suite, hip))
    }

    /// The one that the demonstration uses.
    pub fn stable(project: &Project) -> Self {
        Self::new(project, STABLE, false)
    }

    /// The one whose C library runs programs built with new headers.
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

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The packages to ask the suite for.
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

    /// The marker's first line: another request means another folder.
    fn request(&self) -> String {
        let hip = if self.hip { [HIP].as_slice() } else { &[] };
        format!("packages: {}", [&HSA, hip].concat().join(" "))
    }

    fn unpack(&self, packages: &[PathBuf], into: &Path) -> Result<()> {
        eprintln!("==> unpacking {} packages", packages.len());
        for folder in ["dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp"] {
            fs::create_dir_all(into.join(folder))?;
        }
        // Old packages still ship files in these; all of them are folders of /usr now.
        for folder in ["bin", "sbin", "lib", "lib64"] {
            fs::create_dir_all(into.join("usr").join(folder))?;
            symlink(Path::new("usr").join(folder), into.join(folder))?;
        }
        for package in packages {
            apt::unpack(package, into)?;
        }
        Ok(())
    }

    /// Lets the folder's own loader resolve the libraries of a program in it; needs no privileges.
    fn check(&self, dir: &Path) -> Result<()> {
        let libraries = dir.join("usr/lib/x86_64-linux-gnu");
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
        let marker = fs::read_to_string(self.dir.join(MARKER)).unwrap_or_default();
        marker.lines().next() == Some(self.request().as_str())
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
        fs::write(partial.join(MARKER), marker(&self.request(), &packages))?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        suite.close()
    }
}

/// The HIP library among what its development package needs: the name with the number of its interface.
fn hip_library(needed: &[String]) -> Option<&str> {
    let numbered = |name: &&str| {
        let number = name.strip_prefix(HIP).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    needed.iter().map(String::as_str).find(numbered)
}

/// The HIP library in a folder of libraries, by the name that programs load: `libamdhip64.so.N`.
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

/// The request, then the packages that met it, one a line as `name_version_architecture`.
pub(super) fn marker(request: &str, packages: &[PathBuf]) -> String {
    let stems = packages
        .iter()
        .filter_map(|package| package.file_stem())
        .map(|stem| stem.to_string_lossy());
    stems.fold(request.to_owned() + "\n", |text, stem| {
        text + &stem.replace("%3a", ":") + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_tells_request_and_versions() {
        let packages = ["/a/libc6_2.41-12_amd64.deb", "/a/pciutils_1%3a3.13.0-2_amd64.deb"].map(PathBuf::from);
        let expected = "packages: libhsa-runtime64-1 rocminfo\nlibc6_2.41-12_amd64\npciutils_1:3.13.0-2_amd64\n";
        assert_eq!(marker("packages: libhsa-runtime64-1 rocminfo", &packages), expected);
    }

    #[test]
    fn the_hip_library_is_the_numbered_one() {
        let needed = ["hipcc", "libamdhip64-dev", "libamdhip64-6", "libhiprtc6"].map(str::to_owned);
        assert_eq!(hip_library(&needed), Some("libamdhip64-6"));
        assert_eq!(hip_library(&needed[..2]), None);
    }
}
