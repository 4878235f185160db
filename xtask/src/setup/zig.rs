//! Zig's C compiler, which links against an old version of the C library, and cargo's subcommand for it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Install;
use crate::cmd;
use crate::project::Project;

/// The release of Zig, which names the folder.
const RELEASE: &str = "0.17.1";
/// The package of the subcommand. As in Zig's, the program is in there, ready to run.
const CARGO_ZIGBUILD: &str = "cargo-zigbuild==0.24.1";

/// The folder of both.
pub struct Zig {
    dir: PathBuf,
}

impl Zig {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.cache().join(format!("tools/zig-{RELEASE}")),
        }
    }

    /// Returns the path of the compiler.
    pub fn compiler(&self) -> PathBuf {
        self.dir.join("ziglang/zig")
    }

    /// Returns the path of cargo's subcommand.
    pub fn cargo_zigbuild(&self) -> PathBuf {
        self.dir.join("bin/cargo-zigbuild")
    }
}

impl Install for Zig {
    fn name(&self) -> String {
        format!("Zig {RELEASE}, {CARGO_ZIGBUILD}")
    }

    fn is_ready(&self) -> bool {
        cmd::is_executable(&self.compiler()) && cmd::is_executable(&self.cargo_zigbuild())
    }

    fn install(&self, _: &Project) -> Result<()> {
        cmd::require(
            "python3",
            "the compiler comes by pip: run `apt-get install python3-pip`",
        )?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        cmd::remove_all(&self.dir)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"])
            .arg("--target")
            .arg(&partial)
            .args([&format!("ziglang=={RELEASE}"), CARGO_ZIGBUILD])
            // Older releases of pip do not know the option.
            .env("PIP_ROOT_USER_ACTION", "ignore");
        cmd::read(&mut pip).context(
            "cannot get the compiler: is pip there (`apt-get install python3-pip`)? Otherwise check the network, and run the step again",
        )?;
        Ok(std::fs::rename(&partial, &self.dir)?)
    }
}
