//! One of Debian's kernels, reduced to the files that a virtual machine needs.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use super::cpio::Archive;
use super::modules::{self, Modules};
use super::{MARKER, VmTools, headers, vmlinux};
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;
use crate::setup::{Install, Rootfs};

/// The first program of a virtual machine.
const INIT: &str = include_str!("../../../../tests/vm/init.sh");
/// The version of the recipe, raised whenever the same packages give another folder.
const RECIPE: u32 = 2;
/// The modules that a virtual machine needs to see the host's files and the simulated device, and to communicate with the host.
const BASE_MODULES: [&str; 6] = ["virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_console", "fuse"];
/// The modules that are loaded on demand, each with its dependencies.
const LISTS: [&str; 2] = ["gpu-sched", "amdgpu"];
/// The packages of a kernel, by the prefixes of their names. Their other dependencies are not needed here.
const PACKAGES: [&str; 6] = [
    "linux-base-",
    "linux-image-",
    "linux-binary-",
    "linux-modules-",
    "linux-headers-",
    "linux-kbuild-",
];

/// The series of kernels that are tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Series {
    /// Debian 12: kernel threads for rings, no FUSE passthrough.
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13: work queues for rings.
    #[value(name = "6.12")]
    V6_12,
    /// The newest that Debian has: scheduler events with other names.
    #[value(name = "7.x", alias = "7")]
    V7,
}

impl Series {
    /// Returns the name of the folder for this series.
    pub fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V7 => "7.x",
        }
    }

    /// Returns the suite that has this series as its kernel.
    fn suite(self) -> &'static str {
        match self {
            Self::V6_1 => "bookworm",
            Self::V6_12 => "trixie",
            Self::V7 => "sid",
        }
    }

    /// Returns whether a release such as `6.12.107+deb13-amd64` belongs to this series.
    fn includes(self, release: &str) -> bool {
        let prefix = self.name().trim_end_matches('x').trim_end_matches('.');
        release.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// The folder of one kernel.
pub struct VmKernel {
    series: Series,
    dir: PathBuf,
}

impl VmKernel {
    pub fn new(project: &Project, series: Series) -> Self {
        Self {
            series,
            dir: project.vm_dir().join(series.name()),
        }
    }

    /// Returns every kernel.
    pub fn all(project: &Project) -> impl Iterator<Item = Self> {
        Series::value_variants()
            .iter()
            .map(|series| Self::new(project, *series))
    }

    /// Returns the series of this kernel.
    pub fn series(&self) -> Series {
        self.series
    }

    /// Returns the folder to build modules against. It exists once the kernel is installed.
    pub fn headers(&self) -> Result<PathBuf> {
        let release = fs::read_to_string(self.dir.join("release")).with_context(|| {
            format!(
                "kernel {} is not installed: run `cargo xtask setup --only vm`",
                self.series.name()
            )
        })?;
        Ok(self
            .dir
            .join(format!("headers/usr/src/linux-headers-{}", release.trim())))
    }

    /// Returns the names of the packages that make up the suite's kernel, and its release.
    fn packages(&self, suite: &Suite) -> Result<(Vec<String>, String)> {
        let mut packages: Vec<String> = Vec::new();
        let mut queue = vec!["linux-headers-amd64".to_owned(), "linux-image-amd64".to_owned()];
        while let Some(name) = queue.pop() {
            for needed in suite.depends(&name)? {
                let wanted = PACKAGES.iter().any(|prefix| needed.starts_with(prefix)) && !needed.ends_with("-unsigned");
                if wanted && !packages.contains(&needed) {
                    packages.push(needed.clone());
                    queue.push(needed);
                }
            }
        }
        let release = packages
            .iter()
            .find_map(|package| package.strip_prefix("linux-image-"))
            .context("the suite's linux-image-amd64 names no kernel")?
            .to_owned();
        ensure!(
            self.series.includes(&release),
            "Debian {} has Linux {release} now, which is not of the series {}: adapt xtask's list of kernels",
            self.series.suite(),
            self.series.name()
        );
        Ok((packages, release))
    }

    /// Fills a folder from unpacked packages.
    fn fill(&self, project: &Project, package: &Path, into: &Path, release: &str) -> Result<()> {
        vmlinux::extract(&find_kernel(package, release)?, &into.join("vmlinux"))?;
        let folder = first_of(
            package,
            &[&format!("usr/lib/modules/{release}"), &format!("lib/modules/{release}")],
        )?;
        let modules = Modules::open(&folder, &into.join("modules"))?;
        let base = modules.closure(&BASE_MODULES)?;
        fs::write(into.join("initrd.cpio"), initrd(project, &into.join("modules"), &base)?)?;
        for name in LISTS {
            let order = modules.closure(&[name])?;
            fs::write(into.join(format!("modules/{name}.list")), order.join("\n") + "\n")?;
        }
        modules::strip(&into.join("modules/amdgpu.ko"))?;
        let headers = into.join("headers");
        fs::create_dir_all(headers.join("usr"))?;
        for folder in ["usr/src", "usr/lib"] {
            fs::rename(package.join(folder), headers.join(folder))?;
        }
        cmd::remove_all(&headers.join("usr/lib/modules"))?;
        headers::adapt(
            &headers,
            &self.dir.join("headers"),
            release,
            Rootfs::newest(project).dir(),
        )?;
        fs::write(into.join("release"), format!("{release}\n"))?;
        Ok(())
    }
}

impl Install for VmKernel {
    fn name(&self) -> String {
        format!("the kernel {} of Debian {}", self.series.name(), self.series.suite())
    }

    fn is_ready(&self) -> bool {
        fs::read_to_string(self.dir.join(MARKER)).is_ok_and(|marker| marker == recipe())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, self.series.suite())?;
        let (packages, release) = self.packages(&suite)?;
        let files = suite.download_only(&packages)?;
        let partial = self.dir.with_file_name(format!("{}.partial", self.series.name()));
        cmd::remove_all(&partial)?;
        let unpacked = partial.join("package");
        fs::create_dir_all(&unpacked).with_context(|| format!("cannot create {}", unpacked.display()))?;
        eprintln!("==> unpacking {release}");
        for file in &files {
            apt::unpack(file, &unpacked)?;
        }
        self.fill(project, &unpacked, &partial, &release)
            .with_context(|| format!("cannot prepare the kernel {release}"))?;
        cmd::remove_all(&unpacked)?;
        fs::write(partial.join(MARKER), recipe())?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        suite.close()
    }
}

/// Returns the marker of a complete folder.
fn recipe() -> String {
    let mut hasher = DefaultHasher::new();
    (INIT, BASE_MODULES, LISTS, RECIPE).hash(&mut hasher);
    format!("{:016x}\n", hasher.finish())
}

/// Returns the compressed kernel. Newer packages keep it with the modules.
fn find_kernel(package: &Path, release: &str) -> Result<PathBuf> {
    first_of(
        package,
        &[
            &format!("boot/vmlinuz-{release}"),
            &format!("usr/lib/modules/{release}/vmlinuz"),
        ],
    )
}

fn first_of(base: &Path, names: &[&str]) -> Result<PathBuf> {
    match names.iter().map(|name| base.join(name)).find(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!("Debian's packages contain none of {}", names.join(", ")),
    }
}

/// Returns the first root file system: busybox, the init script and the modules in their order.
fn initrd(project: &Project, modules: &Path, order: &[String]) -> Result<Vec<u8>> {
    let busybox = VmTools::new(project).busybox();
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "lower", "modules", "new", "proc", "upper"] {
        archive.folder(folder);
    }
    let content = fs::read(&busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    archive.program("bin/busybox", &content);
    archive.link("bin/sh", "busybox");
    archive.program("init", INIT.as_bytes());
    for name in order {
        archive.file(&format!("modules/{name}"), &fs::read(modules.join(name))?);
    }
    archive.file("modules/order", (order.join("\n") + "\n").as_bytes());
    Ok(archive.finish())
}

#[cfg(test)]
mod tests {
    use super::Series;

    #[test]
    fn series_are_distinguished() {
        assert!(Series::V6_1.includes("6.1.0-50-amd64") && !Series::V6_1.includes("6.12.107+deb13-amd64"));
        assert!(Series::V6_12.includes("6.12.107+deb13-amd64"));
        assert!(Series::V7.includes("7.2.13+deb14-amd64") && !Series::V7.includes("71.0"));
    }
}
