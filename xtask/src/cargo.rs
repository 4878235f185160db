//! Commands that run cargo, without the variables that an outer cargo set.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::project::Project;

/// Returns a cargo command for this project's workspace, without the variables that the outer `cargo run` set for xtask alone.
pub fn workspace(project: &Project) -> Command {
    workspace_with(project, cargo())
}

/// Returns a cargo command for other targets and for tools, also without the flags, wrappers and profiles meant for the workspace.
pub fn plain(project: &Project) -> Command {
    plain_with(project, cargo())
}

/// Returns a command that runs a subcommand of cargo by its own program, as [`plain`].
pub fn plain_with(project: &Project, program: impl AsRef<OsStr>) -> Command {
    let mut command = workspace_with(project, program);
    remove_variables(&mut command, is_of_workspace_build);
    command
}

fn workspace_with(project: &Project, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(project.root())
        .env("CARGO_TARGET_DIR", project.target());
    remove_variables(&mut command, is_of_cargo_run);
    command
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn remove_variables(command: &mut Command, unwanted: fn(&str) -> bool) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(unwanted) {
            command.env_remove(name);
        }
    }
}

/// Returns whether cargo uses the variable to describe the running package.
fn is_of_cargo_run(name: &str) -> bool {
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || name.starts_with("CARGO_BIN_")
        || ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"].contains(&name)
}

/// Returns whether the variable changes how cargo builds the workspace.
fn is_of_workspace_build(name: &str) -> bool {
    // The number of jobs depends on the machine, and xtask always names the target folder itself.
    let kept = ["CARGO_BUILD_JOBS", "CARGO_TARGET_DIR"];
    let prefixes = ["CARGO_BUILD_", "CARGO_TARGET_", "CARGO_PROFILE_", "CARGO_UNSTABLE_"];
    let names = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_ENCODED_RUSTFLAGS",
    ];
    names.contains(&name) || (prefixes.iter().any(|prefix| name.starts_with(prefix)) && !kept.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_outer_cargo_are_recognized() {
        assert!(is_of_cargo_run("CARGO_PKG_NAME") && is_of_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!is_of_cargo_run("CARGO_HOME") && !is_of_cargo_run("RUSTFLAGS"));
        assert!(is_of_workspace_build("RUSTFLAGS") && is_of_workspace_build("CARGO_BUILD_TARGET"));
        assert!(is_of_workspace_build("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER"));
        assert!(!is_of_workspace_build("CARGO_BUILD_JOBS") && !is_of_workspace_build("CARGO_TARGET_DIR"));
        assert!(!is_of_workspace_build("CARGO_HTTP_PROXY"));
    }
}
