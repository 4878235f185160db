//! Kernels that `cargo xtask setup --only vm` prepared. `xtask/src/setup/vm/mod.rs` describes the contents of their folders.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The command that creates the folders.
const REMEDY: &str = "run `cargo xtask setup --only vm`";

/// A kernel that a virtual machine can be started with.
#[derive(Debug, Clone)]
pub struct Kernel {
    name: String,
    folder: PathBuf,
    release: String,
}

/// A module that can be loaded into a kernel, with its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// AMD's driver. Without a GPU it still creates /dev/kfd.
    Amdgpu,
    /// Real scheduler rings with simulated hardware: `tests/drm-sched-mock`.
    Mock,
}

impl Module {
    /// Returns its name in the kernel's list of modules.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amdgpu => "amdgpu",
            Self::Mock => "drm_sched_mock",
        }
    }
}

impl Kernel {
    /// Returns a kernel by the name of its series: `6.1`, `6.12` or `7.x` (also `7`).
    ///
    /// Kernels are in `$TRACER_CACHE/vm`; `cargo xtask env` names the cache.
    pub fn find(name: &str) -> Result<Self> {
        let name = if name == "7" { "7.x" } else { name };
        let folder = cache_dir()?.join("vm").join(name);
        if !folder.join(".complete").is_file() {
            bail!("kernel {name} is not in {}: {REMEDY}", folder.display());
        }
        let release = fs::read_to_string(folder.join("release"))
            .with_context(|| format!("cannot read the release of kernel {name}: {REMEDY}"))?;
        Ok(Self {
            name: name.to_owned(),
            release: release.trim().to_owned(),
            folder,
        })
    }

    /// Returns all kernels that are tested, oldest first.
    pub fn all() -> Result<Vec<Self>> {
        ["6.1", "6.12", "7.x"].into_iter().map(Self::find).collect()
    }

    /// Returns the name of the series.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the release, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.release
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    pub(crate) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd.cpio")
    }

    /// Returns the machine's emulator if it is installed, else the one in the cache.
    pub(crate) fn emulator() -> Result<PathBuf> {
        let installed = Path::new("/usr/bin/qemu-system-x86_64");
        let own = cache_dir()?.join("vm/tools/qemu");
        match [installed, &own].into_iter().find(|program| program.is_file()) {
            Some(program) => Ok(program.to_owned()),
            None => bail!("no QEMU in {}: {REMEDY}", own.display()),
        }
    }

    /// Returns the program trace-cmd in the cache. It can be run in a machine.
    ///
    /// # Errors
    /// Fails if it is not installed.
    pub fn trace_cmd() -> Result<PathBuf> {
        let program = cache_dir()?.join("vm/tools/trace-cmd");
        if !program.is_file() {
            bail!("no trace-cmd in {}: {REMEDY}", program.display());
        }
        Ok(program)
    }

    /// Returns the files of a module, in loading order.
    pub(crate) fn files(&self, module: Module) -> Result<Vec<PathBuf>> {
        let modules = self.folder.join("modules");
        let list = |name: &str| -> Result<Vec<PathBuf>> {
            let list = modules.join(format!("{name}.list"));
            let text =
                fs::read_to_string(&list).with_context(|| format!("cannot read {}: {REMEDY}", list.display()))?;
            Ok(text.lines().map(|name| modules.join(name)).collect())
        };
        match module {
            Module::Amdgpu => list("amdgpu"),
            Module::Mock => {
                let mock = self.mock()?;
                let mut files = list("gpu-sched")?;
                files.push(mock);
                Ok(files)
            }
        }
    }

    fn mock(&self) -> Result<PathBuf> {
        let folder = env::var_os("TRACER_DRM_SCHED_MOCK")
            .map(PathBuf::from)
            .context("TRACER_DRM_SCHED_MOCK is not set: run `eval \"$(cargo xtask env)\"`")?;
        let file = folder.join(&self.name).join("drm-sched-mock.ko");
        if !file.is_file() {
            bail!("{} is not built: run `cargo xtask vm build`", file.display());
        }
        Ok(file)
    }
}

/// Returns the cache folder by the rules of xtask.
fn cache_dir() -> Result<PathBuf> {
    let path = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("TRACER_CACHE")
        .or_else(|| path("XDG_CACHE_HOME").map(|base| base.join("tracer")))
        .or_else(|| path("HOME").map(|home| home.join(".cache/tracer")))
        .context("no cache folder: neither TRACER_CACHE nor XDG_CACHE_HOME nor HOME is set")
}
