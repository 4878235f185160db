//! The locations of the programs under test and of the files they need, as `cargo xtask test` sets them in the environment.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the folder in a variable that xtask sets, or its place in a checkout where `cargo xtask build` has run.
fn dir(variable: &str, default: PathBuf) -> PathBuf {
    let dir = env::var_os(variable).map_or(default, PathBuf::from);
    assert!(
        dir.is_dir(),
        "{} is not there; run `cargo xtask test`, which makes it",
        dir.display()
    );
    dir
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn cache() -> PathBuf {
    let home = env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
    home.join(".cache/tracer")
}

/// Returns the folder of `tracer`, `kfd-sim` and `hsa-dispatch`.
#[must_use]
pub fn programs() -> PathBuf {
    dir("TRACER_BIN_DIR", target().join("debug"))
        .canonicalize()
        .expect("it is there")
}

/// Returns a command that runs `tracer` as a user without any rights. The caller adds the arguments.
///
/// Uses setpriv of util-linux, which every Debian has.
#[must_use]
pub fn without_rights() -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--bounding-set=-all",
            "--inh-caps=-all",
            "--reuid=65534",
            "--clear-groups",
            "--",
        ])
        .arg(programs().join("tracer"));
    command
}

/// Returns the folder of GPU code objects.
#[must_use]
pub fn kernels() -> PathBuf {
    dir("TRACER_GPU_KERNELS", target().join("gpu-kernels"))
        .canonicalize()
        .expect("it is there")
}

/// Returns a root file system with AMD's runtime.
#[must_use]
pub fn rootfs(suite: &str) -> PathBuf {
    dir("TRACER_ROOTFS_DIR", cache().join("rootfs")).join(suite)
}

/// Returns the folder of Chromium.
#[must_use]
pub fn browser() -> PathBuf {
    dir("TRACER_BROWSER_DIR", cache().join("browser"))
}

/// Returns the folder of Callgrind.
#[must_use]
pub fn valgrind() -> PathBuf {
    dir("TRACER_VALGRIND_DIR", cache().join("valgrind"))
}

/// Returns the folder of Prometheus and promtool.
#[must_use]
pub fn monitors() -> PathBuf {
    dir("TRACER_MONITORS_DIR", cache().join("monitors"))
}

/// Returns the folder of real programs, each in a root file system. It may be missing: its packages are large.
#[must_use]
pub fn clients() -> PathBuf {
    env::var_os("TRACER_CLIENTS_DIR").map_or_else(|| cache().join("clients"), PathBuf::from)
}

/// Returns the folder of crun, which runs containers.
#[must_use]
pub fn containers() -> PathBuf {
    dir("TRACER_CONTAINERS_DIR", cache().join("containers"))
}
