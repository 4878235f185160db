//! The standard library's source, of the very release that compiles it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Install;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// The suites of Debian that may have a release's source, the smallest lists first.
const SUITES: [&str; 5] = ["trixie-backports", "trixie", "forky", "sid", "experimental"];
/// A file that any complete copy has.
const PROOF: &str = "library/core/src/lib.rs";

/// The source for one compiler.
pub struct RustSrc {
    release: String,
    /// Where cargo looks for it.
    place: PathBuf,
    /// Where this program keeps a copy.
    copy: PathBuf,
    /// A copy that may lie beside the project, to be independent of the network.
    archive: PathBuf,
}

impl RustSrc {
    pub fn new(project: &Project) -> Self {
        let toolchain = project.toolchain();
        let release = toolchain.release.clone();
        Self {
            place: toolchain.sysroot.join("lib/rustlib/src/rust"),
            copy: project.cache().join("rust-src").join(&release),
            archive: project
                .root()
                .join(format!("../shared/toolchain/rust-src-{release}.tar.xz")),
            release,
        }
    }

    /// Takes the link to this program's copy away from the compiler.
    pub fn unlink(&self, project: &Project) -> Result<()> {
        match fs::read_link(&self.place) {
            Ok(target) if target.starts_with(project.cache()) => cmd::remove_all(&self.place),
            _ => Ok(()),
        }
    }

    fn by_archive(&self, into: &Path) -> Result<()> {
        cmd::require("tar", "run `apt-get install tar`")?;
        cmd::require("xz", "run `apt-get install xz-utils`")?;
        eprintln!("==> unpacking {}", self.archive.display());
        let mut tar = Command::new("tar");
        tar.arg("-xJf")
            .arg(&self.archive)
            .arg("-C")
            .arg(into)
            .arg("--strip-components=1");
        cmd::read(&mut tar).map(drop)
    }

    fn by_debian(&self, cache: &Path, into: &Path) -> Result<()> {
        let mirror = Mirror::find()?;
        for name in SUITES {
            if self.by_suite(cache, &mirror, name, into)? {
                return Ok(());
            }
        }
        bail!("Debian has no rust-src {} in {}", self.release, SUITES.join(", "))
    }

    /// Gets the source from one suite; false if the suite has another release.
    fn by_suite(&self, cache: &Path, mirror: &Mirror, name: &str, into: &Path) -> Result<bool> {
        let suite = Suite::open(cache, mirror, name)?;
        let versions = suite.versions("rust-src")?;
        let found = versions.iter().find(|version| is_release(version, &self.release));
        if let Some(version) = found {
            let package = suite.download("rust-src", version)?;
            let unpacked = into.join("package");
            apt::unpack(&package, &unpacked)?;
            let source = unpacked.join(format!("usr/src/rustc-{}/library", self.release));
            fs::rename(&source, into.join("library"))
                .with_context(|| format!("{version} has no {}", source.display()))?;
            cmd::remove_all(&unpacked)?;
        }
        suite.close()?;
        Ok(found.is_some())
    }

    /// Makes this program's copy, by whatever way works.
    fn fetch(&self, cache: &Path) -> Result<()> {
        let partial = self.copy.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial)?;
        if self.archive.is_file() {
            self.by_archive(&partial)
        } else {
            self.by_debian(cache, &partial)
        }?;
        if !partial.join(PROOF).is_file() {
            bail!("what was unpacked into {} has no {PROOF}", partial.display());
        }
        cmd::remove_all(&self.copy)?;
        fs::rename(&partial, &self.copy).with_context(|| format!("cannot rename {}", partial.display()))
    }

    /// Shows the copy to cargo.
    fn link(&self) -> Result<()> {
        let (place, copy) = (self.place.display(), self.copy.display());
        let parent = self.place.parent().context("the compiler's folder has no parent")?;
        let linked = fs::create_dir_all(parent).and_then(|()| {
            if self.place.is_symlink() {
                fs::remove_file(&self.place)?;
            }
            symlink(&self.copy, &self.place)
        });
        linked.with_context(|| {
            format!(
                "cannot link {place}: run `sudo mkdir -p {}` and `sudo ln -sfnT {copy} {place}`",
                parent.display()
            )
        })
    }
}

impl Install for RustSrc {
    fn name(&self) -> String {
        format!("the standard library's source, release {}", self.release)
    }

    fn is_ready(&self) -> bool {
        self.place.join(PROOF).is_file()
    }

    fn install(&self, project: &Project) -> Result<()> {
        if !self.copy.join(PROOF).is_file() {
            // rustup is the user's to run: it changes the compiler's installation.
            self.fetch(project.cache()).with_context(|| {
                format!(
                    "no source of Rust {}: run `rustup component add rust-src`, or mend what follows",
                    self.release
                )
            })?;
        }
        self.link()?;
        if !self.is_ready() {
            bail!(
                "{} is still missing: remove {} and run the step again",
                PROOF,
                self.place.display()
            );
        }
        Ok(())
    }
}

/// Whether Debian's version is of that upstream release.
fn is_release(version: &str, release: &str) -> bool {
    version
        .strip_prefix(release)
        .is_some_and(|rest| rest.starts_with(['+', '-', '~']))
}

#[cfg(test)]
mod tests {
    use super::is_release;

    #[test]
    fn releases_are_compared_whole() {
        assert!(is_release("1.95.0+dfsg1-2~bpo13+1", "1.95.0"));
        assert!(is_release("1.95.0-1", "1.95.0"));
        assert!(!is_release("1.95.01-1", "1.95.0"));
        assert!(!is_release("1.96.1+dfsg1-2", "1.95.0"));
    }
}
