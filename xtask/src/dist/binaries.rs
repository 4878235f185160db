//! The programs of a release, for computers with an older C library than this one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::cmd;
use crate::install;
use crate::project::Project;
use crate::remap;
use crate::setup::Zig;

/// The version of the C library that the programs need: that of the oldest distribution for which AMD publishes ROCm 6 (RHEL 8).
pub const GLIBC: (u32, u32) = (2, 28);
const TARGET: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "dist";

/// Builds the programs. Returns their folder.
pub fn build(project: &Project) -> Result<PathBuf> {
    let zig = Zig::new(project);
    let mut cargo = cargo::plain_with(project, zig.cargo_zigbuild());
    cargo
        .args(["zigbuild", "--locked", "--profile", PROFILE, "--target"])
        .arg(format!("{TARGET}.{}.{}", GLIBC.0, GLIBC.1))
        .args(["--package", "tracer-cli", "--package", "hsa-dispatch"])
        .env("CARGO_ZIGBUILD_ZIG_PATH", zig.compiler())
        .env("CARGO_ENCODED_RUSTFLAGS", remap::arguments(project)?.join("\x1f"))
        .envs(project.variables());
    cmd::run(&mut cargo)?;
    let programs = project.target().join(TARGET).join(PROFILE);
    for program in install::PROGRAMS {
        check(&programs.join(program))?;
        remap::check(project, &programs.join(program))?;
    }
    Ok(programs)
}

/// Checks that a program needs no newer C library.
fn check(program: &Path) -> Result<()> {
    let symbols = cmd::read(Command::new("objdump").arg("-T").arg(program))?;
    let newest = newest(&symbols).with_context(|| format!("{} uses no symbol of glibc", program.display()))?;
    if newest > GLIBC {
        bail!(
            "{} needs glibc {}.{}, not {}.{}",
            program.display(),
            newest.0,
            newest.1,
            GLIBC.0,
            GLIBC.1
        );
    }
    Ok(())
}

/// Returns the newest version of glibc that a list of dynamic symbols names.
fn newest(symbols: &str) -> Option<(u32, u32)> {
    symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
            let mut parts = version.split('.').map(str::parse);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_version_counts_by_numbers() {
        let symbols = "\
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.2.5) getenv
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.28) fcntl64
0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.9) pipe2
0000000000000000      DF *UND*  0000000000000000 (GCC_3.0)   _Unwind_Resume";
        assert_eq!(newest(symbols), Some((2, 28)));
        assert_eq!(newest("0000 DF .text run"), None);
    }
}
