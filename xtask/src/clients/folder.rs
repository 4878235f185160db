//! The folders that programs run in: Debian's packages, without their scripts, and Python packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::roots::{Root, StandIn};
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::lock;
use crate::project::Project;
use crate::setup::folder;

/// Where Python finds packages that Debian does not have.
const WHEELS: &str = "usr/lib/python3/dist-packages";
/// What cannot be had tells how to get it.
const NO_NETWORK: &str =
    "run the command again with a network; `cargo xtask clients --list` shows what is there already";

/// Returns the folder of all that `cargo xtask clients` downloads.
pub fn all(project: &Project) -> PathBuf {
    project.cache().join("clients")
}

/// Returns the path of a folder, which may not be there.
pub fn path(project: &Project, root: &Root) -> PathBuf {
    all(project).join(root.name)
}

/// Returns whether a folder is there and was made for this declaration.
pub fn is_ready(project: &Project, root: &Root) -> bool {
    folder::is_marked(&path(project, root), &request(root))
}

/// Makes the folder unless it is there. Downloads that an interrupted attempt left are used again.
pub fn make(project: &Project, root: &Root) -> Result<()> {
    if is_ready(project, root) {
        return Ok(());
    }
    let _lock = lock::acquire(project.cache())?;
    if is_ready(project, root) {
        return Ok(());
    }
    // A folder of another declaration is of no use, and both may not fit.
    cmd::remove_all(&path(project, root))?;
    // Folders of one suite have downloads of their own: what an interrupted attempt left belongs to one of them.
    let downloads = all(project).join("downloads").join(root.name);
    let suite = Suite::open(&downloads, &Mirror::find()?, root.suite).context(NO_NETWORK)?;
    let mut packages = suite.download_closure(root.packages).context(NO_NETWORK)?;
    if !root.alone.is_empty() {
        let alone: Vec<String> = root.alone.iter().map(|&name| name.to_owned()).collect();
        packages = suite.download_only(&alone).context(NO_NETWORK)?;
    }
    let partial = all(project).join(root.name).with_extension("partial");
    cmd::remove_all(&partial)?;
    // Of the others, the packages do not state what is left.
    if root.leave_out.is_empty() {
        enough_space(&all(project), &packages)?;
    }
    folder::create_root(&partial)?;
    for package in &packages {
        apt::unpack_without(package, &partial, root.leave_out)?;
    }
    packages.extend(wheels(root, &downloads, &partial)?);
    for library in root.stand_ins {
        stand_in(library, &partial.join(folder::LIBRARIES))?;
    }
    folder::complete(&partial, &path(project, root), &request(root), &packages)?;
    suite.close()?;
    cmd::remove_all(&downloads)
}

/// Returns the version of a package or wheel in a folder.
pub fn version(project: &Project, root: &Root, package: &str) -> Result<String> {
    let folder = path(project, root);
    let packages = folder::packages(&folder)?;
    version_in(&packages, package).with_context(|| {
        format!(
            "{} has no {package}: remove this folder, and run again",
            folder.display()
        )
    })
}

/// Finds the version of a package among the stems of package files. A wheel has `_` for `-` in its name, and `-` before its version.
fn version_in(packages: &[String], package: &str) -> Option<String> {
    let wheel = package.replace('-', "_") + "-";
    packages.iter().find_map(|stem| {
        let debian = stem.strip_prefix(package).and_then(|rest| rest.strip_prefix('_'));
        let version = match debian {
            Some(rest) => rest.split('_').next(),
            None => stem.strip_prefix(&wheel)?.split('-').next(),
        };
        version.map(str::to_owned)
    })
}

/// Returns the marker's first line.
fn request(root: &Root) -> String {
    let stand_ins: Vec<String> = root.stand_ins.iter().map(|library| format!("{library:?}")).collect();
    let stand_ins: Vec<&str> = stand_ins.iter().map(String::as_str).collect();
    folder::request(&[root.packages, root.alone, root.wheels, root.leave_out, &stand_ins].concat())
}

/// Fails if packages do not fit where they will be unpacked. Without it, tar would fail after minutes.
fn enough_space(folder: &Path, packages: &[PathBuf]) -> Result<()> {
    let space = rustix::fs::statvfs(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let needed = apt::unpacked_bytes(packages)?;
    let mib = |bytes: u64| bytes >> 20;
    ensure!(
        free > needed,
        "{} has {} MiB free, and the programs need {} MiB: free some, run `cargo xtask clean-cache`, or point TRACER_CACHE elsewhere",
        folder.display(),
        mib(free),
        mib(needed)
    );
    Ok(())
}

/// Downloads wheels and unpacks them. Returns their files.
fn wheels(root: &Root, downloads: &Path, into: &Path) -> Result<Vec<PathBuf>> {
    if root.wheels.is_empty() {
        return Ok(Vec::new());
    }
    cmd::require("python3", "the wheels come by pip: run `apt-get install python3-pip`")?;
    let folder = downloads.join("wheels");
    fs::create_dir_all(&folder)?;
    eprintln!("==> downloading {}", root.wheels.join(", "));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    pip.args(["--implementation", "cp", "--python-version", &python(into)?]);
    for platform in ["manylinux_2_28_x86_64", "manylinux2014_x86_64"] {
        pip.args(["--platform", platform]);
    }
    cmd::read(pip.arg("--dest").arg(&folder).args(root.wheels)).with_context(|| {
        format!(
            "cannot get {}: is pip there (`apt-get install python3-pip`)? {NO_NETWORK}",
            root.wheels.join(", ")
        )
    })?;
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in &files {
        let mut unzip = Command::new("python3");
        unzip.args(["-m", "zipfile", "-e"]).arg(file).arg(into.join(WHEELS));
        cmd::read(&mut unzip).with_context(|| format!("cannot unpack {}", file.display()))?;
    }
    Ok(files)
}

/// Returns the version of Python in a folder, as `3.14`.
fn python(root: &Path) -> Result<String> {
    for entry in fs::read_dir(root.join("usr/lib"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(version) = name.strip_prefix("python").filter(|version| version.contains('.')) {
            return Ok(version.to_owned());
        }
    }
    bail!(
        "{} has wheels and no Python: add python3 to its packages",
        root.display()
    )
}

/// Compiles a library. It replaces the one of that name, if a package has it.
fn stand_in(wanted: &StandIn, folder: &Path) -> Result<()> {
    cmd::require("cc", "run `apt-get install build-essential`")?;
    let library = folder.join(wanted.library);
    let (source, versions) = (library.with_extension("c"), library.with_extension("map"));
    cmd::remove_all(&library)?;
    fs::write(&source, wanted.source)?;
    fs::write(&versions, format!("{} {{ global: *; }};\n", wanted.version))?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-nostdlib", "-fPIC"]);
    cc.arg(format!(
        "-Wl,-soname,{},--version-script,{}",
        wanted.library,
        versions.display()
    ));
    cmd::read(cc.arg("-o").arg(&library).arg(&source))?;
    fs::remove_file(&source)?;
    Ok(fs::remove_file(&versions)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_packages_and_wheels() {
        let packages = [
            "clinfo_3.0.25.02.14-1_amd64",
            "rocminfo_7.2.4-1_amd64",
            "libclang-common-22-dev_1:22.1.8-3_amd64",
            "cupy_rocm_7_0-14.2.0-cp314-cp314-manylinux2014_x86_64",
        ]
        .map(str::to_owned);
        let version = |package| version_in(&packages, package);
        assert_eq!(version("clinfo").as_deref(), Some("3.0.25.02.14-1"));
        assert_eq!(version("libclang-common-22-dev").as_deref(), Some("1:22.1.8-3"));
        assert_eq!(version("cupy-rocm-7-0").as_deref(), Some("14.2.0"));
        assert_eq!(version("rocm"), None);
    }
}
