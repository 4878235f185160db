//! The standard library's source, of exactly the release that compiles it.
//!
//! Builds for eBPF and for GPUs compile `core` themselves. The source comes from, in this order: the installed component; rustup,
//! if it manages the compiler; Debian's package; an archive beside the project.

mod rustup;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::Install;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;
use rustup::Rustup;

/// The suites of Debian that may have a release's source, the smallest lists first.
const SUITES: [&str; 5] = ["trixie-backports", "trixie", "forky", "sid", "experimental"];
/// A file that every complete copy has.
const PROOF: &str = "library/core/src/lib.rs";

/// The source for one compiler.
pub struct RustSrc {
    release: String,
    /// The path where cargo searches for the source.
    place: PathBuf,
    /// The path where this program keeps a copy.
    copy: PathBuf,
    /// An archive that may be beside the project, to be independent of the network.
    archive: PathBuf,
    /// The rustup that manages the compiler, or the reason why there is none.
    rustup: Result<Rustup, String>,
}

/// A way to the source: its name, and a function that gets the source.
type Way<'a> = (&'static str, &'a dyn Fn() -> Result<()>);

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
            rustup: Rustup::of(&toolchain.sysroot),
            release,
        }
    }

    /// Removes the link to this program's copy from the compiler's folder.
    pub fn unlink(&self, project: &Project) -> Result<()> {
        match fs::read_link(&self.place) {
            Ok(target) if target.starts_with(project.cache()) => cmd::remove_all(&self.place),
            _ => Ok(()),
        }
    }

    /// Lets rustup install the component.
    fn by_rustup(&self) -> Result<()> {
        let rustup = self.rustup.as_ref().map_err(|reason| anyhow::anyhow!("{reason}"))?;
        // A link to a copy that is gone would block rustup.
        if self.place.is_symlink() {
            cmd::remove_all(&self.place)?;
        }
        let folder = self.copy.parent().context("the cache has no folder")?;
        fs::create_dir_all(folder)?;
        rustup.add_component(&folder.join("rustup.log"))?;
        ensure!(
            self.is_ready(),
            "rustup takes the component for installed, but {} is missing; run `rustup component remove rust-src \
             --toolchain {}` and try again",
            self.place.join(PROOF).display(),
            rustup.toolchain
        );
        Ok(())
    }

    /// Downloads Debian's package into the cache.
    fn by_debian(&self, cache: &Path) -> Result<()> {
        self.copy_by(|into| {
            let mirror = Mirror::find()?;
            for name in SUITES {
                if self.by_suite(cache, &mirror, name, into)? {
                    return Ok(());
                }
            }
            bail!("Debian has no rust-src {} in {}", self.release, SUITES.join(", "))
        })
    }

    /// Gets the source from one suite. Returns false if the suite has another release.
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

    /// Unpacks the archive beside the project into the cache.
    fn by_archive(&self) -> Result<()> {
        ensure!(self.archive.is_file(), "there is no {}", self.archive.display());
        cmd::require("tar", "run `apt-get install tar`")?;
        cmd::require("xz", "run `apt-get install xz-utils`")?;
        self.copy_by(|into| {
            eprintln!("==> unpacking {}", self.archive.display());
            let mut tar = Command::new("tar");
            tar.arg("-xJf")
                .arg(&self.archive)
                .arg("-C")
                .arg(into)
                .arg("--strip-components=1");
            cmd::read(&mut tar).map(drop)
        })
    }

    /// Creates this program's copy from the files that `get` puts into a folder. An interrupted attempt leaves no copy.
    fn copy_by(&self, get: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let partial = self.copy.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        get(&partial)?;
        ensure!(
            partial.join(PROOF).is_file(),
            "what was unpacked into {} has no {PROOF}",
            partial.display()
        );
        cmd::remove_all(&self.copy)?;
        fs::rename(&partial, &self.copy).with_context(|| format!("cannot rename {}", partial.display()))
    }

    /// Tries the ways one after the other until one succeeds. Reports for each way that fails why it failed.
    fn first_of(&self, ways: &[Way<'_>]) -> Result<()> {
        let mut reasons = Vec::new();
        for (name, go) in ways {
            let Err(error) = go() else { return Ok(()) };
            let reason = one_line(&format!("{error:#}"));
            eprintln!("==> no source of Rust {} from {name}: {reason}", self.release);
            reasons.push(format!("{name}: {reason}"));
        }
        bail!(
            "no source of Rust {} ({}); run `rustup component add rust-src`, or put an archive of it at {}",
            self.release,
            reasons.join("; "),
            self.archive.display()
        )
    }

    /// Links the copy to the place where cargo searches.
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
        // A copy in the cache came by one of the earlier ways, for another installation of the same release.
        if !self.copy.join(PROOF).is_file() {
            self.first_of(&[
                ("rustup", &|| self.by_rustup()),
                ("Debian", &|| self.by_debian(project.cache())),
                ("the archive", &|| self.by_archive()),
            ])?;
        }
        if !self.is_ready() {
            self.link()?;
        }
        ensure!(
            self.is_ready(),
            "{PROOF} is still missing: remove {} and run the step again",
            self.place.display()
        );
        Ok(())
    }
}

/// Returns whether Debian's version is of that upstream release.
fn is_release(version: &str, release: &str) -> bool {
    version
        .strip_prefix(release)
        .is_some_and(|rest| rest.starts_with(['+', '-', '~']))
}

/// Converts an error message of several lines to one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
