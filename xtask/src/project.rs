//! Where things are: the project, its build output, the cache and the compiler.

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
    /// Finds the project this program belongs to and the folders that the environment chooses.
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

    /// The workspace's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The cache folder, outside the project.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The compiler that builds it.
    pub fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }

    /// The programs of a development build.
    pub fn bin_dir(&self) -> PathBuf {
        self.target.join("debug")
    }

    /// The linked eBPF object.
    pub fn ebpf_object(&self) -> PathBuf {
        self.target.join("ebpf/tracer-ebpf.o")
    }

    /// The linked eBPF object whose programs say what they decide.
    pub fn ebpf_log_object(&self) -> PathBuf {
        self.target.join("ebpf/tracer-ebpf-log.o")
    }

    /// The folder of GPU code objects, one `CPU.co` each.
    pub fn gpu_kernels(&self) -> PathBuf {
        self.target.join("gpu-kernels")
    }

    /// The folder of root file systems, one a suite.
    pub fn rootfs_dir(&self) -> PathBuf {
        self.cache.join("rootfs")
    }

    /// The folder of programs that read what `tracer serve` exposes.
    pub fn monitors_dir(&self) -> PathBuf {
        self.cache.join("monitors")
    }

    /// The folder of the browser that looks at the page of `tracer serve`.
    pub fn browser_dir(&self) -> PathBuf {
        self.cache.join("browser")
    }

    /// The folder of the program that runs containers.
    pub fn containers_dir(&self) -> PathBuf {
        self.cache.join("containers")
    }

    /// The folder of virtual machines: tools, and one folder a kernel.
    pub fn vm_dir(&self) -> PathBuf {
        self.cache.join("vm")
    }

    /// The folder of the mock scheduler's modules, one folder a kernel.
    pub fn drm_sched_mock(&self) -> PathBuf {
        self.target.join("drm-sched-mock")
    }

    /// The variables by which builds and tests find what xtask made.
    pub fn variables(&self) -> [(&'static str, PathBuf); 9] {
        [
            ("TRACER_EBPF_OBJECT", self.ebpf_object()),
            ("TRACER_EBPF_LOG_OBJECT", self.ebpf_log_object()),
            ("TRACER_GPU_KERNELS", self.gpu_kernels()),
            ("TRACER_ROOTFS_DIR", self.rootfs_dir()),
            ("TRACER_MONITORS_DIR", self.monitors_dir()),
            ("TRACER_BROWSER_DIR", self.browser_dir()),
            ("TRACER_CONTAINERS_DIR", self.containers_dir()),
            ("TRACER_BIN_DIR", self.bin_dir()),
            ("TRACER_DRM_SCHED_MOCK", self.drm_sched_mock()),
        ]
    }

    /// [`Self::variables`] and the cache as lines that a shell can evaluate.
    pub fn shell_assignments(&self) -> String {
        let cache = ("TRACER_CACHE", self.cache.clone());
        self.variables()
            .into_iter()
            .chain([cache])
            .map(|(name, path)| format!("export {name}={}\n", cmd::shell_quote(&path.to_string_lossy())))
            .collect()
    }
}

/// A path from the environment; an empty variable counts as unset.
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
    /// Release, such as `1.95.0`.
    pub release: String,
    /// Major version of the LLVM inside.
    pub llvm_major: u32,
    /// All of `rustc -vV`: changes whenever the compiler does.
    pub description: String,
    /// Where the compiler's libraries are.
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// Asks rustc.
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
    /// The target that it builds for unless told otherwise.
    pub fn host(&self) -> Result<&str> {
        let mut lines = self.description.lines();
        let host = lines.find_map(|line| line.strip_prefix("host: "));
        host.context("`rustc -vV` names no host")
    }
}

/// Takes the release and LLVM's major version out of `rustc -vV`.
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
