//! The tarball, the .deb and the .rpm of the same files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Release, binaries::GLIBC};
use crate::cmd;
use crate::install;
use crate::project::Project;
use crate::setup;

/// The packages' scripts, in `packaging`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes the tarball: the files below a folder with the release's name.
pub fn tarball(release: &Release, stage: &Path) -> Result<()> {
    let name = format!("tracer-{}", release.version);
    let tar = release.out.join(format!("{name}-x86_64-linux.tar"));
    let mut pack = Command::new("tar");
    pack.args([
        "--create",
        "--format=gnu",
        "--sort=name",
        "--numeric-owner",
        "--owner=0",
        "--group=0",
    ])
    .arg(format!("--mtime=@{}", release.time))
    .arg(format!("--transform=s,^\\.,{name},"))
    .arg("--file")
    .arg(&tar)
    .arg("--directory")
    .arg(stage)
    .arg(".");
    cmd::run(&mut pack)?;
    cmd::run(Command::new("gzip").args(["--no-name", "--best"]).arg(&tar))
}

/// Writes the description of the package, with the files that only packages have. Returns its folder.
pub fn describe(project: &Project, release: &Release, stage: &Path) -> Result<PathBuf> {
    let from = project.root().join("packaging");
    let folder = project.target().join("dist-package");
    cmd::remove_all(&folder)?;
    let files = folder.join("files");
    fs::create_dir_all(&folder)?;
    cmd::run(Command::new("cp").args(["-a", "-T"]).arg(stage).arg(&files))?;
    let unit = fs::read_to_string(project.root().join("dashboards/systemd/tracer-serve.service"))?;
    write(
        &files.join("lib/systemd/system/tracer-serve.service"),
        &unit.replace("/usr/local/bin/", "/usr/bin/"),
    )?;
    for script in SCRIPTS {
        write(
            &folder.join("scripts").join(script),
            &fs::read_to_string(from.join(script))?,
        )?;
    }
    write(&folder.join("main.rs"), "fn main() {}\n")?;
    let (mut deb, mut rpm) = (String::new(), String::new());
    for file in install::files(&files)? {
        let (file, mode) = (file.display(), if file.starts_with("bin") { "755" } else { "644" });
        deb += &format!("  [\"files/{file}\", \"usr/{file}\", \"{mode}\"],\n");
        rpm += &format!("  {{ source = \"files/{file}\", dest = \"/usr/{file}\", mode = \"{mode}\" }},\n");
    }
    let manifest = fs::read_to_string(from.join("package.toml"))?
        .replace("@VERSION@", &release.version)
        .replace("@GLIBC@", &format!("{}.{}", GLIBC.0, GLIBC.1))
        .replace("@DEB_ASSETS@", &deb)
        .replace("@RPM_ASSETS@", &rpm);
    write(&folder.join("Cargo.toml"), &manifest)?;
    Ok(folder)
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(file, text)?)
}

/// Writes the .deb with a revision into a folder. Returns its path.
pub fn deb(project: &Project, release: &Release, package: &Path, revision: u32, into: &Path) -> Result<PathBuf> {
    let file = into.join(format!("tracer_{}-{revision}_amd64.deb", release.version));
    let mut deb = crate::cargo::plain_with(project, setup::cargo_deb(project).program());
    deb.current_dir(package)
        .args(["deb", "--no-build", "--no-strip", "--deb-revision"])
        .arg(revision.to_string())
        .arg("--output")
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", &release.time);
    cmd::run(&mut deb)?;
    Ok(file)
}

/// Writes the .rpm.
pub fn rpm(project: &Project, release: &Release, package: &Path) -> Result<()> {
    let mut rpm = crate::cargo::plain_with(project, setup::cargo_generate_rpm(project).program());
    rpm.current_dir(package)
        .args(["generate-rpm", "--output"])
        .arg(release.out.join(format!("tracer-{}-1.x86_64.rpm", release.version)))
        .env("SOURCE_DATE_EPOCH", &release.time);
    cmd::run(&mut rpm)
}
