//! Debian packages of any suite, without changes to the system: apt runs with its own configuration and state.

mod mirror;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cmd;
pub use mirror::Mirror;

/// The error message if apt is missing.
const NO_APT: &str = "this step takes packages from a Debian mirror by apt and dpkg; \
    run it on Debian or Ubuntu, or in a container of one of them";

/// Suites that only add to another suite: experimental has only packages under trial.
const BASES: [(&str, &str); 1] = [("experimental", "sid")];

/// One suite of Debian, with package lists, downloads and an empty list of installed packages in its own folder.
pub struct Suite {
    name: String,
    dir: PathBuf,
}

impl Suite {
    /// Prepares a suite below `cache` and downloads its package lists.
    ///
    /// Continues an earlier, interrupted attempt.
    pub fn open(cache: &Path, mirror: &Mirror, name: &str) -> Result<Self> {
        cmd::require("apt-get", NO_APT)?;
        cmd::require("dpkg", NO_APT)?;
        let suite = Self {
            name: name.to_owned(),
            dir: cache.join("apt").join(name),
        };
        suite
            .configure(mirror)
            .with_context(|| format!("cannot write apt's configuration in {}", suite.dir.display()))?;
        eprintln!("==> reading the package lists of Debian {name}");
        cmd::read(suite.apt("apt-get").args(["-q", "update"])).with_context(|| {
            format!(
                "cannot read the package lists of Debian {name}: check the network and the mirror \
                 ({}; another one can be set by TRACER_DEBIAN_MIRROR)",
                mirror.uri
            )
        })?;
        // The suite may have replaced packages that an earlier attempt downloaded.
        cmd::read(suite.apt("apt-get").args(["-q", "autoclean"]))?;
        Ok(suite)
    }

    /// Returns the versions of a package that the suite has.
    pub fn versions(&self, package: &str) -> Result<Vec<String>> {
        let table = cmd::read(self.apt("apt-cache").args(["madison", package]))?;
        Ok(parse_madison(&table))
    }

    /// Downloads packages and all their dependencies. Returns the files.
    pub fn download_closure(&self, packages: &[impl AsRef<str>]) -> Result<Vec<PathBuf>> {
        let packages: Vec<&str> = packages.iter().map(AsRef::as_ref).collect();
        eprintln!(
            "==> downloading {} and what they need from Debian {}",
            packages.join(", "),
            self.name
        );
        cmd::read(
            self.apt("apt-get")
                .args(["-q", "-y", "--download-only", "install"])
                .args(&packages),
        )
        .with_context(|| {
            format!(
                "cannot get {} from Debian {}: run the step again",
                packages.join(", "),
                self.name
            )
        })?;
        self.downloads()
    }

    /// Downloads one package without its dependencies. Returns the file.
    pub fn download(&self, package: &str, version: &str) -> Result<PathBuf> {
        eprintln!("==> downloading {package} {version} from Debian {}", self.name);
        let mut command = self.apt("apt-get");
        cmd::read(
            command
                .args(["-q", "download", &format!("{package}={version}")])
                .current_dir(self.archives()),
        )
        .with_context(|| format!("cannot get {package} {version} from Debian {}", self.name))?;
        match self.downloads()?.as_slice() {
            [file] => Ok(file.clone()),
            files => bail!(
                "apt downloaded {} files instead of one into {}",
                files.len(),
                self.archives().display()
            ),
        }
    }

    /// Downloads these packages in the suite's versions, without their dependencies. Returns the files.
    pub fn download_only(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        eprintln!("==> downloading {} from Debian {}", packages.join(", "), self.name);
        let mut command = self.apt("apt-get");
        cmd::read(
            command
                .args(["-q", "download"])
                .args(packages)
                .current_dir(self.archives()),
        )
        .with_context(|| {
            format!(
                "cannot get {} from Debian {}: run the step again",
                packages.join(", "),
                self.name
            )
        })?;
        self.downloads()
    }

    /// Returns the dependencies of a package, in the version that would be installed, including alternatives.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let one_version = ["-o", "APT::Cache::AllVersions=false"];
        let listing = cmd::read(self.apt("apt-cache").args(one_version).args(["depends", package]))?;
        Ok(parse_depends(&listing))
    }

    /// Removes lists and downloads, which are not useful once the packages are unpacked.
    pub fn close(self) -> Result<()> {
        cmd::remove_all(&self.dir)
    }

    fn archives(&self) -> PathBuf {
        self.dir.join("cache/archives")
    }

    fn downloads(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.archives())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("APT_CONFIG", self.dir.join("apt.conf"))
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn configure(&self, mirror: &Mirror) -> Result<()> {
        for folder in [
            "lists/partial",
            "cache/archives/partial",
            "log",
            "etc/empty",
            "etc/sources.list.d",
        ] {
            fs::create_dir_all(self.dir.join(folder))?;
        }
        fs::write(self.dir.join("status"), "")?;
        fs::write(
            self.dir.join("etc/sources.list.d/suite.sources"),
            mirror.stanza(&suites(&self.name)),
        )?;
        let acquire = cmd::read(Command::new("apt-config").arg("dump"))?;
        let mut text = configuration(&self.dir, &acquire);
        if base(&self.name).is_some() {
            // By default apt would take nothing from a suite that is not meant to be installed as a whole.
            text.push_str(&format!("APT::Default-Release \"{}\";\n", self.name));
        }
        fs::write(self.dir.join("apt.conf"), text)?;
        Ok(())
    }
}

/// Returns the suite below this one.
fn base(suite: &str) -> Option<&'static str> {
    BASES.iter().find(|(name, _)| *name == suite).map(|&(_, base)| base)
}

/// Returns a suite and the one below it, in the form that a list of sources uses.
fn suites(suite: &str) -> String {
    base(suite).map_or_else(|| suite.to_owned(), |base| format!("{base} {suite}"))
}

/// Returns the bytes that packages take when they are unpacked, by their field `Installed-Size` in KiB (Debian Policy, section 5.6.20).
/// A package without it, which may be, counts with the size of its file.
pub fn unpacked_bytes(packages: &[PathBuf]) -> Result<u64> {
    packages.iter().try_fold(0_u64, |sum, package| {
        let field = cmd::read(
            Command::new("dpkg-deb")
                .arg("--field")
                .arg(package)
                .arg("Installed-Size"),
        )?;
        let stated = field.trim().parse::<u64>().ok().map(|kib| kib.saturating_mul(1024));
        let bytes = match stated {
            Some(bytes) => bytes,
            None => fs::metadata(package)?.len(),
        };
        Ok(sum.saturating_add(bytes))
    })
}

/// Unpacks a package's files into a folder, which is created if it is missing. None of the package's scripts run.
///
/// Links to folders stay links: packages of old releases have files in `/lib`, which is `/usr/lib` in all of them. By default `dpkg
/// -x` would replace the link with a folder.
pub fn unpack(package: &Path, into: &Path) -> Result<()> {
    unpack_without(package, into, &[])
}

/// Does the same, and leaves out the files that match one of the patterns of tar, of which `*` also matches `/`.
pub fn unpack_without(package: &Path, into: &Path, leave_out: &[&str]) -> Result<()> {
    fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
    let mut dpkg = Command::new("dpkg")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start dpkg")?;
    let files = dpkg.stdout.take().context("dpkg has no output")?;
    let tar = Command::new("tar")
        .args(["-x", "--keep-directory-symlink", "-C"])
        .arg(into)
        .args(leave_out.iter().map(|pattern| format!("--exclude={pattern}")))
        .stdin(files)
        .output()
        .context("cannot start tar")?;
    let read = dpkg.wait().context("cannot wait for dpkg")?;
    if !(read.success() && tar.status.success()) {
        let complaint = String::from_utf8_lossy(&tar.stderr);
        bail!("cannot unpack {}: {}", package.display(), complaint.trim());
    }
    Ok(())
}

/// Returns an apt configuration that contains nothing of this system except how to reach the network.
fn configuration(dir: &Path, system: &str) -> String {
    let dir = dir.display();
    let network: String = system
        .lines()
        .filter(|line| is_about_network(line))
        .map(|line| format!("{line}\n"))
        .collect();
    format!(
        r#"{network}Dir::Etc::main "/dev/null";
Dir::Etc::parts "{dir}/etc/empty";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{dir}/etc/sources.list.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{dir}/etc/empty";
Dir::State "{dir}";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}/cache";
Dir::Log "{dir}/log";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "3";
"#
    )
}

/// Returns whether a line of `apt-config dump` says how to download (proxies, certificates, checks of dates).
fn is_about_network(line: &str) -> bool {
    let skipped = [
        "Acquire::IndexTargets",
        "Acquire::Languages",
        "Acquire::GzipIndexes",
        "Acquire::Retries",
    ];
    line.starts_with("Acquire::") && !skipped.iter().any(|prefix| line.starts_with(prefix))
}

/// Extracts the version column from `apt-cache madison`.
fn parse_madison(table: &str) -> Vec<String> {
    table
        .lines()
        .filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned()))
        .collect()
}

/// Extracts the real packages from `apt-cache depends`.
fn parse_depends(listing: &str) -> Vec<String> {
    listing
        .lines()
        .filter_map(|line| line.split_once("Depends: "))
        .map(|(_, name)| name.trim().to_owned())
        .filter(|name| !name.starts_with('<'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_listed_without_virtual_packages() {
        let listing = "linux-image-6.12.107+deb13-amd64\n  PreDepends: linux-base\n  Depends: kmod\n \
                       |Depends: initramfs-tools\n  Depends: <linux-initramfs-tool>\n    dracut\n  Breaks: fdutils\n";
        assert_eq!(parse_depends(listing), ["linux-base", "kmod", "initramfs-tools"]);
        assert!(parse_depends("kmod\n").is_empty());
    }

    #[test]
    fn a_package_is_unpacked_into_a_folder_that_is_not_there_yet() {
        if cmd::find("dpkg-deb").is_none() {
            eprintln!("NOT TESTED: unpacking needs dpkg-deb, and this machine has none");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        fs::create_dir_all(tree.join("usr/share")).unwrap();
        let control = "Package: sample\nVersion: 1\nArchitecture: all\nInstalled-Size: 12\nMaintainer: T <t@example.org>\nDescription: sample\n";
        fs::write(tree.join("DEBIAN/control"), control).unwrap();
        fs::write(tree.join("usr/share/sample"), "here").unwrap();
        let package = dir.path().join("sample.deb");
        let mut build = Command::new("dpkg-deb");
        cmd::read(build.args(["--build", "--root-owner-group"]).arg(&tree).arg(&package)).unwrap();
        let into = dir.path().join("not/there/yet");
        unpack(&package, &into).unwrap();
        assert_eq!(fs::read_to_string(into.join("usr/share/sample")).unwrap(), "here");
        assert_eq!(unpacked_bytes(&[package.clone(), package]).unwrap(), 2 * 12 * 1024);
    }

    #[test]
    fn a_suite_that_only_adds_comes_with_the_one_below() {
        assert_eq!(suites("experimental"), "sid experimental");
        assert_eq!(suites("trixie"), "trixie");
    }

    #[test]
    fn madison_lists_versions() {
        let table = "  rust-src | 1.96.1+dfsg1-2~bpo13+1 | http://mirror/debian trixie-backports/main amd64 Packages\n  \
                       rust-src | 1.95.0+dfsg1-2~bpo13+1 | http://mirror/debian trixie-backports/main amd64 Packages\n";
        assert_eq!(
            parse_madison(table),
            ["1.96.1+dfsg1-2~bpo13+1", "1.95.0+dfsg1-2~bpo13+1"]
        );
        assert!(parse_madison("").is_empty());
    }

    #[test]
    fn the_systems_proxy_is_kept_and_its_hooks_are_not() {
        let system = "APT::Update::Post-Invoke:: \"rm -f *\";\nAcquire::http::Proxy \"http://proxy:3128\";\n\
                      Acquire::IndexTargets::deb::DEP-11 \"\";\nDir::State::status \"/var/lib/dpkg/status\";\n";
        let text = configuration(Path::new("/c"), system);
        assert!(
            text.starts_with("Acquire::http::Proxy \"http://proxy:3128\";\nDir::Etc::main"),
            "{text}"
        );
        assert!(!text.contains("Post-Invoke") && !text.contains("DEP-11") && !text.contains("/var/lib"));
        assert!(text.contains("Dir::State::status \"/c/status\";"));
    }
}
