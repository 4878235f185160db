//! Installs the programs of a release build below a prefix, and removes them again.
//!
//! The user who builds first puts all files together in a subfolder of the target folder, with the layout that they have below the
//! prefix. Only then are they copied, by sudo if the prefix needs it. A list of the files is installed with them. Uninstalling
//! removes these files, and the folders that are empty then.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::build::{self, Profile};
use crate::cmd;
use crate::project::Project;

/// A prefix where `sudo` finds programs, and that no package manager owns.
const PREFIX: &str = "/usr/local";
/// The list of installed files, below the prefix.
const LIST: &str = "lib/tracer/installed-files";
/// The kernels of hsa-dispatch, below the prefix; tests/hsa-dispatch/src/kernels.rs searches there.
const KERNELS: &str = "lib/tracer/gpu-kernels";
/// The programs that users run.
pub const PROGRAMS: [&str; 2] = ["tracer", "hsa-dispatch"];
/// Folders below the prefix that belong to tracer alone: they are removed if they are empty.
const OWN_FOLDERS: [&str; 3] = [KERNELS, "lib/tracer", "share/doc/tracer"];

/// Where to install.
#[derive(Args)]
pub struct Install {
    /// Install below this folder.
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
    /// Install the development build instead of an optimized one.
    #[arg(long)]
    dev: bool,
}

/// Where it was installed.
#[derive(Args)]
pub struct Uninstall {
    /// Remove what was installed below this folder.
    #[arg(long, value_name = "DIR", default_value = PREFIX)]
    prefix: PathBuf,
}

/// Builds and installs the programs.
pub fn install(project: &Project, wanted: &Install) -> Result<()> {
    let profile = if wanted.dev { Profile::Dev } else { Profile::Release };
    build::run(project, profile)?;
    let folder = project.target().join("install");
    let files = stage(project, &project.target().join(profile.folder()), &folder)?;
    write_list(&folder, files)?;
    let prefix = std::path::absolute(&wanted.prefix)?;
    // Removes the files that an earlier version installed and this one does not.
    if prefix.join(LIST).exists() {
        remove(&prefix)?;
    }
    // Everyone may run the programs, whatever the umask of the one who installs them.
    let mut copy = as_owner(&prefix, "sh")?;
    copy.args(["-c", r#"umask 022; exec cp -R --no-preserve=ownership -T "$@""#, "sh"])
        .arg(&folder)
        .arg(&prefix);
    cmd::run(&mut copy)?;
    eprintln!(
        "==> installed below {}; `cargo xtask uninstall` removes it",
        prefix.display()
    );
    Ok(())
}

/// Removes the installed files.
pub fn uninstall(wanted: &Uninstall) -> Result<()> {
    let prefix = std::path::absolute(&wanted.prefix)?;
    remove(&prefix)?;
    eprintln!("==> removed tracer from {}", prefix.display());
    Ok(())
}

/// Puts the files into `stage`, with the layout that they have below the prefix; `programs` is the folder of the programs. Returns
/// the files.
pub fn stage(project: &Project, programs: &Path, stage: &Path) -> Result<BTreeSet<PathBuf>> {
    cmd::remove_all(stage)?;
    for program in PROGRAMS {
        put(&programs.join(program), &stage.join("bin").join(program))?;
    }
    for entry in fs::read_dir(project.gpu_kernels())? {
        let file = entry?.path();
        if let (Some(name), true) = (file.file_name(), file.extension().is_some_and(|end| end == "co")) {
            put(&file, &stage.join(KERNELS).join(name))?;
        }
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        put(
            &project.root().join(licence),
            &stage.join("share/doc/tracer").join(licence),
        )?;
    }
    // Generates man pages and completions.
    cmd::run(
        Command::new(programs.join("tracer"))
            .arg("generate")
            .arg(stage.join("share")),
    )?;
    files(stage)
}

/// Writes the list of the staged files, which is one of them.
fn write_list(stage: &Path, mut files: BTreeSet<PathBuf>) -> Result<()> {
    files.insert(LIST.into());
    let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    fs::write(stage.join(LIST), lines)?;
    set_mode(&stage.join(LIST), 0o644)
}

/// Returns the staged files, relative to their folder, and gives them and their folders their usual modes.
pub fn files(stage: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    list(stage, stage, &mut files)?;
    Ok(files)
}

fn put(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn set_mode(file: &Path, mode: u32) -> Result<()> {
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(mode))?)
}

/// Adds the files below `folder` to `files`, relative to `base`, and gives folders and files their usual modes.
fn list(base: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    set_mode(folder, 0o755)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(base, &path, files)?;
        } else {
            let is_program = path.starts_with(base.join("bin"));
            set_mode(&path, if is_program { 0o755 } else { 0o644 })?;
            files.insert(path.strip_prefix(base)?.to_owned());
        }
    }
    Ok(())
}

/// Removes the listed files below the prefix, and tracer's own folders if they are empty.
fn remove(prefix: &Path) -> Result<()> {
    let list = prefix.join(LIST);
    let text = fs::read_to_string(&list)
        .with_context(|| format!("tracer is not installed below {}: cannot read {LIST}", prefix.display()))?;
    let files = listed(&text)?;
    let mut rm = as_owner(prefix, "rm")?;
    rm.arg("-f").arg("--").args(files.iter().map(|file| prefix.join(file)));
    cmd::run(&mut rm)?;
    let folders: Vec<PathBuf> = OWN_FOLDERS.iter().map(|folder| prefix.join(folder)).collect();
    let mut rmdir = as_owner(prefix, "rmdir")?;
    rmdir.args(["--ignore-fail-on-non-empty", "--"]);
    cmd::run(rmdir.args(folders.iter().filter(|folder| folder.is_dir())))
}

/// Returns the files of a list. Each must be a path below the prefix.
fn listed(text: &str) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> = text.lines().map(PathBuf::from).collect();
    for file in &files {
        let is_below = file.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below || file.as_os_str().is_empty() {
            bail!(
                "the list of installed files names {}, which is not a path below the prefix: nothing was removed",
                file.display()
            );
        }
    }
    Ok(files)
}

/// Returns a command that may change files below the prefix. It uses sudo if this user may not change them.
fn as_owner(prefix: &Path, program: &str) -> Result<Command> {
    if cmd::is_root()? || is_writable(prefix) {
        return Ok(Command::new(program));
    }
    cmd::require(
        "sudo",
        "installing there needs root: choose another --prefix, or run this as root",
    )?;
    let mut command = Command::new("sudo");
    command.arg(program);
    Ok(command)
}

/// Returns whether this user may create files in the folder, or, if it does not exist, in the nearest existing folder above it.
fn is_writable(folder: &Path) -> bool {
    folder
        .ancestors()
        .find_map(
            |folder| match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
                Err(rustix::io::Errno::NOENT) => None,
                done => Some(done.is_ok()),
            },
        )
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_leads_out_of_the_prefix_is_refused() {
        assert_eq!(listed("bin/tracer\nlib/tracer/x\n").unwrap().len(), 2);
        for text in ["/etc/passwd\n", "bin/../../etc/passwd\n", "\n"] {
            assert!(listed(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_listed_files_go_and_others_stay() {
        let prefix = tempfile::tempdir().unwrap();
        let file = |name: &str| prefix.path().join(name);
        for name in ["bin/tracer", "bin/other", "lib/tracer/gpu-kernels/a.co", LIST] {
            fs::create_dir_all(file(name).parent().unwrap()).unwrap();
            fs::write(file(name), "").unwrap();
        }
        fs::write(file(LIST), format!("bin/tracer\nlib/tracer/gpu-kernels/a.co\n{LIST}\n")).unwrap();
        remove(prefix.path()).unwrap();
        let mut left = BTreeSet::new();
        list(prefix.path(), prefix.path(), &mut left).unwrap();
        assert_eq!(left, BTreeSet::from([PathBuf::from("bin/other")]));
        assert!(!file("lib/tracer").exists() && file("lib").exists());
        assert!(remove(prefix.path()).is_err());
    }
}
