//! The real libraries, from the root file systems that `cargo xtask setup` creates.

use std::path::{Path, PathBuf};

/// Required suites, each with another release of the runtime: without one, its release would silently go untested. The tests use
/// other suites if they are there.
const REQUIRED: [&str; 4] = ["bookworm", "trixie", "sid", "experimental"];
/// Suites whose builds stay the same, except for security fixes.
pub const RELEASED: [&str; 2] = ["bookworm", "trixie"];
const IN_ROOTFS: &str = "usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";
/// Path of the library in Debian.
pub const PATH: &str = "/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";

/// Returns every available HSA runtime, with its suite.
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut suites: Vec<String> = REQUIRED.map(str::to_owned).into();
    for entry in std::fs::read_dir(rootfs_dir()).into_iter().flatten().flatten() {
        let suite = entry.file_name().into_string().expect("suites have plain names");
        if !suites.contains(&suite) && entry.path().join(IN_ROOTFS).exists() {
            suites.push(suite);
        }
    }
    suites.into_iter().map(|suite| (suite.clone(), load(&suite))).collect()
}

/// Returns the HSA runtime of one suite.
pub fn load(suite: &str) -> Vec<u8> {
    let path = rootfs_dir().join(suite).join(IN_ROOTFS);
    match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => panic!("{}: {error}: run `cargo xtask setup`", path.display()),
    }
}

/// Returns the C library of this test process.
pub fn libc() -> Vec<u8> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let path = paths
        .find(|path| path.ends_with("/libc.so.6"))
        .expect("the test is linked with glibc");
    std::fs::read(path).expect("libc is readable")
}

/// Returns the folder of the root file systems.
pub fn rootfs_dir() -> PathBuf {
    match std::env::var_os("TRACER_ROOTFS_DIR") {
        Some(dir) => dir.into(),
        None => Path::new(&std::env::var_os("HOME").expect("HOME is set")).join(".cache/tracer/rootfs"),
    }
}
