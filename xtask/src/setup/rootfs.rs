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

/// The suites, one for each release of the runtime: 6.1.2 and (when this was written) 6.4.3.
const SUITES: [&str; 2] = ["trixie", "sid"];
/// What goes into each, with all that it depends on.
const PACKAGES: [&str; 2] = ["libhsa-runtime64-1", "rocminfo"];
/// Written last; names what was asked for and what was unpacked.
const MARKER: &str = ".complete";

/// A folder for one suite.
pub struct Rootfs {
    suite: &'static str,
    dir: PathBuf,
}

impl Rootfs {
    /// One folder for each suite.
    pub fn all(project: &Project) -> impl Iterator<Item = Self> {
        let base = project.rootfs_dir();
        SUITES.into_iter().map(move |suite| Self {
            suite,
            dir: base.join(suite),
        })
    }

    /// The folder that the demonstration uses: Debian's stable one.
    pub fn stable(project: &Project) -> PathBuf {
        project.rootfs_dir().join(SUITES[0])
    }

    /// The folder with the newest C library.
    pub fn newest(project: &Project) -> PathBuf {
        project.rootfs_dir().join(SUITES[1])
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
        let mut loader = Command::new(dir.join("usr/lib64/ld-linux-x86-64.so.2"));
        loader
            .arg("--library-path")
            .arg(&libraries)
            .arg("--list")
            .arg(dir.join("usr/bin/rocminfo"));
        let list = cmd::read(&mut loader).context("the unpacked runtime cannot be loaded")?;
        if list.contains("not found") || !libraries.join("libhsa-runtime64.so.1").exists() {
            bail!("the unpacked runtime lacks libraries: {list}");
        }
        Ok(())
    }
}

impl Install for Rootfs {
    fn name(&self) -> String {
        format!("the runtime of Debian {}", self.suite)
    }

    fn is_ready(&self) -> bool {
        let marker = fs::read_to_string(self.dir.join(MARKER)).unwrap_or_default();
        marker.lines().next() == Some(request().as_str())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, self.suite)?;
        let packages = suite.download_closure(&PACKAGES)?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        self.unpack(&packages, &partial).with_context(|| {
            format!(
                "cannot unpack into {}: check the free space and that it is yours",
                partial.display()
            )
        })?;
        self.check(&partial)?;
        fs::write(partial.join(MARKER), marker(&packages))?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        suite.close()
    }
}

/// The marker's first line: another request means another folder.
fn request() -> String {
    format!("packages: {}", PACKAGES.join(" "))
}

/// The request, then the packages that met it, one a line as `name_version_architecture`.
fn marker(packages: &[PathBuf]) -> String {
    let stems = packages
        .iter()
        .filter_map(|package| package.file_stem())
        .map(|stem| stem.to_string_lossy());
    stems.fold(request() + "\n", |text, stem| text + &stem.replace("%3a", ":") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_tells_request_and_versions() {
        let packages = ["/a/libc6_2.41-12_amd64.deb", "/a/pciutils_1%3a3.13.0-2_amd64.deb"].map(PathBuf::from);
        let expected = "packages: libhsa-runtime64-1 rocminfo\nlibc6_2.41-12_amd64\npciutils_1:3.13.0-2_amd64\n";
        assert_eq!(marker(&packages), expected);
    }
}
