//! The compiler of crates outside the workspace, as a wrapper whose symbols are the same in each folder.
//!
//! The symbols of a crate contain a hash of what cargo passes as `-C metadata`. For a package outside the folder of its workspace, as
//! `tracer-common` is for `tracer-ebpf`, that contains the package's absolute path. The hash is only there to distinguish packages
//! of one name, and this project has each of its own packages once.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

/// The variable that makes this program a wrapper of the compiler.
const VARIABLE: &str = "TRACER_XTASK_WRAPS_RUSTC";
/// Part of the fingerprint of builds: changes when the wrapper passes on other arguments than before.
pub const VERSION: &str = "1";

/// How the names of this project's own crates start.
const OWN: &str = "tracer_";

/// Makes cargo run the compiler by this program.
pub fn adjust(cargo: &mut Command) -> Result<()> {
    let wrapper = env::current_exe().context("cannot find the path of this program")?;
    cargo.env("RUSTC_WRAPPER", wrapper).env(VARIABLE, VERSION);
    Ok(())
}

/// Becomes the compiler if cargo runs this program as its wrapper. Returns only if it does not, or with the error.
pub fn become_compiler() -> Result<()> {
    if env::var_os(VARIABLE).is_none() {
        return Ok(());
    }
    let mut arguments = env::args_os().skip(1);
    let compiler = arguments.next().context("cargo names no compiler")?;
    let error = Command::new(&compiler)
        .args(with_stable_names(arguments.collect()))
        .env_remove(VARIABLE)
        .exec();
    Err(error).with_context(|| format!("cannot run {}", compiler.display()))
}

/// Replaces the metadata of an own crate by its name.
fn with_stable_names(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.iter().position(|argument| argument == "--crate-name");
    let name = name.and_then(|at| arguments.get(at + 1)?.to_str().map(str::to_owned));
    if let Some(name) = name.filter(|name| name.starts_with(OWN)) {
        for argument in &mut arguments {
            if argument.to_str().is_some_and(|text| text.starts_with("metadata=")) {
                *argument = format!("metadata={name}").into();
            }
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjusted(name: &str) -> Vec<OsString> {
        let arguments = [
            "--crate-name",
            name,
            "lib.rs",
            "-C",
            "metadata=1f",
            "-C",
            "extra-filename=-2e",
        ];
        with_stable_names(arguments.map(OsString::from).to_vec())
    }

    #[test]
    fn own_crates_have_their_name_as_metadata() {
        let expected = [
            "--crate-name",
            "tracer_common",
            "lib.rs",
            "-C",
            "metadata=tracer_common",
            "-C",
            "extra-filename=-2e",
        ];
        assert_eq!(adjusted("tracer_common"), expected.map(OsString::from));
    }

    #[test]
    fn other_crates_keep_theirs() {
        assert_eq!(adjusted("core")[4], "metadata=1f");
        assert_eq!(with_stable_names(vec!["-vV".into()]), ["-vV"]);
    }
}
