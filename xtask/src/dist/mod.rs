//! Packages of a release: one folder with a tarball, a .deb, an .rpm, files for containers, the list of all parts and the checksums.
//!
//! Everything that differs between two builds of the same commit is set: times, owners, the order of files, and the paths of sources.

mod binaries;
mod checks;
mod containers;
mod packages;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::build;
use crate::cmd;
use crate::install;
use crate::project::Project;
use crate::setup::{self, Part};

/// The checksums of all files.
const CHECKSUMS: &str = "SHA256SUMS";
/// A file that marks a folder as made by `dist`, which may empty it.
const MARK: &str = ".made-by-dist";

/// What to make of a release.
#[derive(Args)]
pub struct Dist {
    /// Put the files into this folder, which is emptied first.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Afterwards build the last commit again in another folder, and fail if a file differs.
    #[arg(long)]
    twice: bool,
    /// Afterwards install, use and remove the packages in new root folders of Debian. Needs root.
    #[arg(long)]
    trial: bool,
    /// Afterwards use the packages in containers of Podman and Docker. Needs root.
    #[arg(long)]
    containers: bool,
    /// Make nothing: use the packages that an earlier run made.
    #[arg(long, requires = "containers", conflicts_with_all = ["twice", "trial"])]
    made: bool,
}

/// The parts of a release's name, and where its files go.
struct Release {
    version: String,
    /// Time of the last commit, in seconds of Unix time: that of every file.
    time: String,
    out: PathBuf,
}

/// Makes the packages.
pub fn run(project: &Project, wanted: &Dist) -> Result<()> {
    // What ends later would end after a build of many minutes.
    if wanted.twice && !git(project.root(), &["status", "--porcelain"])?.is_empty() {
        bail!("a second build is one of the last commit, and there are changes since: commit them first");
    }
    if (wanted.trial || wanted.containers) && !cmd::is_root()? {
        bail!("trying the packages needs root");
    }
    let release = Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: git(project.root(), &["log", "-1", "--format=%ct"])?,
        out: match &wanted.out {
            Some(out) => std::path::absolute(out)?,
            // `target/dist` is cargo's own folder, of the profile with that name.
            None => project.target().join("packages"),
        },
    };
    if !wanted.made {
        make(project, wanted, &release)?;
    }
    if wanted.containers {
        containers::run(project, &release)?;
    }
    eprintln!("==> the packages are in {}", release.out.display());
    Ok(())
}

fn make(project: &Project, wanted: &Dist, release: &Release) -> Result<()> {
    cmd::require("objdump", "run `apt-get install binutils`")?;
    setup::run(project, &Part::DIST)?;
    empty(&release.out)?;
    checks::licences(project)?;
    build::objects(project)?;
    let programs = binaries::build(project)?;
    let stage = project.target().join("dist-stage");
    install::stage(project, &programs, &stage)?;
    packages::tarball(release, &stage)?;
    let package = packages::describe(project, release, &stage)?;
    packages::deb(project, release, &package, 1, &release.out)?;
    packages::rpm(project, release, &package)?;
    checks::parts(project, release)?;
    containers::copy_files(project, &release.out)?;
    sum(&release.out)?;
    if wanted.twice {
        again(project, release)?;
    }
    if wanted.trial {
        trial::run(project, release, &package)?;
    }
    // What does not hold has no signature.
    sign(&release.out)
}

/// Makes the folder, and empties it if an earlier run made it. Another folder with files is refused.
fn empty(out: &Path) -> Result<()> {
    let is_other = out.is_dir() && fs::read_dir(out)?.next().is_some() && !out.join(MARK).is_file();
    if is_other {
        bail!(
            "{}: it has files and no {MARK}, so it is not emptied; remove it, or give another folder",
            out.display()
        );
    }
    cmd::remove_all(out)?;
    fs::create_dir_all(out)?;
    Ok(fs::write(out.join(MARK), "")?)
}

/// Writes the checksums of all files.
fn sum(out: &Path) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(out)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| name != MARK);
    names.sort();
    let sums = cmd::read(Command::new("sha256sum").current_dir(out).arg("--").args(&names))?;
    Ok(fs::write(out.join(CHECKSUMS), sums)?)
}

/// Signs the checksums by the key that $SIGNING_KEY names.
fn sign(out: &Path) -> Result<()> {
    let Some(key) = std::env::var_os("SIGNING_KEY").filter(|key| !key.is_empty()) else {
        eprintln!("==> the checksums are not signed: SIGNING_KEY names no key");
        return Ok(());
    };
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-Y", "sign", "-n", "file", "-f"])
        .arg(key)
        .arg(out.join(CHECKSUMS));
    cmd::run(&mut sign).context("cannot sign the checksums: SIGNING_KEY must name a key of ssh-keygen")
}

/// Builds the last commit in another folder, and compares the checksums.
fn again(project: &Project, release: &Release) -> Result<()> {
    let folder = project.target().join("dist-again");
    let (source, out) = (folder.join("source"), folder.join("out"));
    cmd::remove_all(&folder)?;
    cmd::run(
        Command::new("git")
            .args(["clone", "--quiet", "--no-hardlinks"])
            .arg(project.root())
            .arg(&source),
    )?;
    let mut cargo = crate::cargo::plain(project);
    cargo
        .current_dir(&source)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("SIGNING_KEY");
    cmd::run(cargo.args(["xtask", "dist", "--out"]).arg(&out))?;
    let read = |folder: &Path| fs::read_to_string(folder.join(CHECKSUMS));
    let (first, second) = (read(&release.out)?, read(&out)?);
    let differing: Vec<&str> = first
        .lines()
        .filter(|line| !second.lines().any(|other| other == *line))
        .collect();
    if !differing.is_empty() {
        bail!("a second build differs in:\n{}", differing.join("\n"));
    }
    eprintln!("==> a second build in another folder is the same");
    cmd::remove_all(&folder)
}

/// Returns what git prints in a folder.
fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let text = cmd::read(Command::new("git").current_dir(folder).args(args))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_dist_made_is_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let [made, other] = ["made", "other"].map(|name| dir.path().join(name));
        empty(&made).unwrap();
        fs::write(made.join("tracer.deb"), "").unwrap();
        empty(&made).unwrap();
        assert!(!made.join("tracer.deb").exists());

        fs::create_dir(&other).unwrap();
        let files = [CHECKSUMS, "thesis"].map(|name| other.join(name));
        for file in &files {
            fs::write(file, "").unwrap();
        }
        assert!(empty(&other).is_err());
        assert!(files.iter().all(|file| file.exists()));
    }
}
