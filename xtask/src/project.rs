//! Paths of the project, its build output and the cache; and the compiler.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cmd;

/// Paths of this checkout and of the cache that all checkouts share, and the compiler.
pub struct Project {
    root: PathBuf,
    target: PathBuf,
    cache: PathBuf,
    toolchain: Toolchain,
}

impl Project {
    /// Finds the project that this program belongs to, and the folders that the environment chooses.
    pub fn locate() -> Result<Self> {
        // Cargo sets the variable at run time; the built-in value serves a binary that is started by hand.
        let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&package)
            .parent()
            .context("xtask's folder has no parent")?
            .to_path_buf();
        let target = match env_path("CARGO_TARGET_DIR") {
            Some(dir) => std::path::absolute(dir)?,
            None => root.join("target"),
        };
        Ok(Self {
            root,
            target,
            cache: cache_dir()?,
            toolchain: Toolchain::detect()?,
        })
    }

    /// Returns the folder of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns cargo's target folder.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the cache folder, which is outside the project.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the compiler that builds the project.
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// Returns the folder of the programs of a development build.
    pub fn bin_dir(&self) -> PathBuf {
        self.target.join("debug")
    }

    /// Returns the path of the linked eBPF object.
    pub fn ebpf_object(&self) -> PathBuf {
        self.target.join("ebpf/tracer-ebpf.o")
    }

    /// Returns the path of the linked eBPF object whose programs log their decisions.
    pub fn ebpf_log_object(&self) -> PathBuf {
        self.target.join("ebpf/tracer-ebpf-log.o")
    }

    /// Returns the folder of GPU code objects, with one `CPU.co` per processor.
    pub fn gpu_kernels(&self) -> PathBuf {
        self.target.join("gpu-kernels")
    }

    /// Returns the folder of root file systems, with one folder per suite.
    pub fn rootfs_dir(&self) -> PathBuf {
        self.cache.join("rootfs")
    }

    /// Returns the folder of the programs that read the metrics of `tracer serve`.
    pub fn monitors_dir(&self) -> PathBuf {
        self.cache.join("monitors")
    }

    /// Returns the folder of the browser that tests the page of `tracer serve`.
    pub fn browser_dir(&self) -> PathBuf {
        self.cache.join("browser")
    }

    /// Returns the folder of the program that runs containers.
    pub fn containers_dir(&self) -> PathBuf {
        self.cache.join("containers")
    }

    /// Returns the folder of the engines that run containers from images.
    pub fn engines_dir(&self) -> PathBuf {
        self.cache.join("engines")
    }

    /// Returns the folder of the programs with which `bench` compares tracer.
    pub fn peers_dir(&self) -> PathBuf {
        self.cache.join("peers")
    }

    /// Returns the folder of the program that counts instructions.
    pub fn valgrind_dir(&self) -> PathBuf {
        self.cache.join("valgrind")
    }

    /// Returns the folder of virtual machines: tools, and one folder per kernel.
    pub fn vm_dir(&self) -> PathBuf {
        self.cache.join("vm")
    }

    /// Returns the folder of the mock scheduler's modules, with one folder per kernel.
    pub fn drm_sched_mock(&self) -> PathBuf {
        self.target.join("drm-sched-mock")
    }

    /// Returns the variables by which builds and tests find the files that xtask created.
    pub fn variables(&self) -> [(&'static str, PathBuf); 10] {
        [
            ("TRACER_EBPF_OBJECT", self.ebpf_object()),
            ("TRACER_EBPF_LOG_OBJECT", self.ebpf_log_object()),
            ("TRACER_GPU_KERNELS", self.gpu_kernels()),
            ("TRACER_ROOTFS_DIR", self.rootfs_dir()),
            ("TRACER_MONITORS_DIR", self.monitors_dir()),
            ("TRACER_BROWSER_DIR", self.browser_dir()),
            ("TRACER_CONTAINERS_DIR", self.containers_dir()),
            ("TRACER_VALGRIND_DIR", self.valgrind_dir()),
            ("TRACER_BIN_DIR", self.bin_dir()),
            ("TRACER_DRM_SCHED_MOCK", self.drm_sched_mock()),
        ]
    }

    /// Formats [`Self::variables`] and the cache as lines that a shell can evaluate.
    pub fn shell_assignments(&self) -> String {
        let cache = ("TRACER_CACHE", self.cache.clone());
        self.variables()
            .into_iter()
            .chain([cache])
            .map(|(name, path)| format!("export {name}={}\n", cmd::shell_quote(&path.to_string_lossy())))
            .collect()
    }
}

/// Returns a path from the environment. An empty variable counts as unset.
fn env_path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn cache_dir() -> Result<PathBuf> {
    let chosen = env_path("TRACER_CACHE")
        .or_else(|| env_path("XDG_CACHE_HOME").map(|base| base.join("tracer")))
        .or_else(|| env_path("HOME").map(|home| home.join(".cache/tracer")))
        .context("no cache folder: neither TRACER_CACHE nor XDG_CACHE_HOME nor HOME is set")?;
    Ok(std::path::absolute(chosen)?)
}

/// The compiler that the builds use.
pub struct Toolchain {
    /// The release, such as `1.95.0`.
    pub release: String,
    /// The major version of the LLVM in the compiler.
    pub llvm_major: u32,
    /// The whole output of `rustc -vV`, which changes whenever the compiler changes.
    pub description: String,
    /// The folder of the compiler's libraries.
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// Gets the description from rustc.
    fn detect() -> Result<Self> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
        let description = cmd::read(Command::new(&rustc).arg("-vV"))?;
        let sysroot = cmd::read(Command::new(&rustc).args(["--print", "sysroot"]))?
            .trim_end()
            .into();
        let (release, llvm_major) = parse_version(&description)
            .with_context(|| format!("`rustc -vV` said something unknown: {description}"))?;
        Ok(Self {
            release,
            llvm_major,
            description,
            sysroot,
        })
    }
}

impl Toolchain {
    /// Returns the target that the compiler builds for by default.
    pub fn host(&self) -> Result<&str> {
        let mut lines = self.description.lines();
        let host = lines.find_map(|line| line.strip_prefix("host: "));
        host.context("`rustc -vV` names no host")
    }
}

/// Extracts the release and LLVM's major version from `rustc -vV`.
fn parse_version(description: &str) -> Option<(String, u32)> {
    let field = |name| description.lines().find_map(|line| line.strip_prefix(name));
    let llvm_major = field("LLVM version: ")?.split('.').next()?.parse().ok()?;
    Some((field("release: ")?.to_owned(), llvm_major))
}

#[cfg(test)]
mod tests {
    use super::parse_version;

    #[test]
    fn compiler_version_is_parsed() {
        let description = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nrelease: 1.95.0\nLLVM version: 22.1.2\n";
        assert_eq!(parse_version(description), Some(("1.95.0".to_owned(), 22)));
        assert_eq!(parse_version("release: 1.95.0\n"), None);
    }
}
