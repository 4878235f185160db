//! rustup, if it manages the compiler in use.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::cmd;

/// How long rustup may take to download and unpack the component (3 MB).
const LIMIT: Duration = Duration::from_secs(120);

/// A program that adds components to the compiler in use.
pub struct Rustup {
    /// The path of the program.
    pub program: PathBuf,
    /// The name by which the program knows the compiler.
    pub toolchain: String,
    /// How long the program may take.
    pub limit: Duration,
}

impl Rustup {
    /// Returns the rustup that manages the compiler with that sysroot, or the reason why there is none.
    pub fn of(sysroot: &Path) -> Result<Self, String> {
        let toolchain = home()
            .and_then(|home| toolchain(sysroot, &home))
            .ok_or_else(|| format!("rustup does not manage the compiler in {}", sysroot.display()))?;
        let program = cmd::find("rustup").ok_or("`rustup` is not on PATH")?;
        Ok(Self {
            program,
            toolchain,
            limit: LIMIT,
        })
    }

    /// Installs the component. The output of rustup goes to the file `log`.
    pub fn add_component(&self, log: &Path) -> Result<()> {
        let mut rustup = Command::new(&self.program);
        rustup.args(["component", "add", "rust-src", "--toolchain", &self.toolchain]);
        cmd::run_within(&mut rustup, self.limit, log)
    }
}

/// Returns the folder of rustup.
fn home() -> Option<PathBuf> {
    let chosen = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    chosen("RUSTUP_HOME").or_else(|| chosen("HOME").map(|home| home.join(".rustup")))
}

/// Returns the name of the toolchain with that sysroot, if the sysroot is in rustup's folder `home`.
fn toolchain(sysroot: &Path, home: &Path) -> Option<String> {
    let sysroot = sysroot.canonicalize().ok()?;
    let toolchains = home.join("toolchains").canonicalize().ok()?;
    let name = sysroot.strip_prefix(&toolchains).ok()?.to_str()?;
    (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::toolchain;

    #[test]
    fn only_what_lies_among_rustups_toolchains_is_managed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(".rustup");
        let managed = home.join("toolchains/stable-x86_64-unknown-linux-gnu");
        let other = dir.path().join("toolchains/copy");
        fs::create_dir_all(&managed).unwrap();
        fs::create_dir_all(&other).unwrap();
        assert_eq!(
            toolchain(&managed, &home).as_deref(),
            Some("stable-x86_64-unknown-linux-gnu")
        );
        for path in [&other, &home.join("toolchains"), &home.join("toolchains/gone")] {
            assert_eq!(toolchain(path, &home), None, "{}", path.display());
        }
        assert_eq!(toolchain(&other, &dir.path().join("no-rustup")), None);
    }
}
