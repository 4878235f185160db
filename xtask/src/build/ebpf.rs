//! The eBPF objects that tracer loads: the usual one, and one whose programs log their decisions.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cross::CrossBuild;
use crate::project::Project;
use crate::remap;
use crate::setup::BpfLinker;

const TARGET: &str = "bpfel-unknown-none";
/// The additional arguments for the diagnostic object.
const DIAGNOSTICS: [&str; 2] = ["--features", "log"];

/// Builds `tracer-ebpf`, without and with its diagnostics.
pub fn build(project: &Project, linker: &BpfLinker) -> Result<()> {
    let flags = flags(project)?;
    for (output, features) in variants(project) {
        cross(project, linker, output, features, &flags).run(project, adjust(linker, features, &flags)?)?;
    }
    Ok(())
}

/// Runs clippy over both variants.
pub fn lint(project: &Project, linker: &BpfLinker) -> Result<()> {
    let flags = flags(project)?;
    for (output, features) in variants(project) {
        cross(project, linker, output, features, &flags).lint(project, adjust(linker, features, &flags)?)?;
    }
    Ok(())
}

fn variants(project: &Project) -> [(PathBuf, &'static [&'static str]); 2] {
    [(project.ebpf_object(), &[]), (project.ebpf_log_object(), &DIAGNOSTICS)]
}

fn cross(
    project: &Project,
    linker: &BpfLinker,
    output: PathBuf,
    features: &[&str],
    flags: &str,
) -> CrossBuild<'static> {
    let krate = project.root().join("tracer-ebpf");
    CrossBuild {
        sources: vec![krate.clone(), project.root().join("tracer-common")],
        krate,
        target: TARGET,
        target_dir: project.target().join("ebpf"),
        artifact: "tracer-ebpf",
        output,
        settings: format!("{} {} {flags}", linker.program.display(), features.join(" ")),
    }
}

/// Returns the setting for `cargo --config` that adds flags to those of `tracer-ebpf/.cargo/config.toml`: each package contains the
/// object, and must not depend on this machine's folders.
fn flags(project: &Project) -> Result<String> {
    Ok(format!("target.{TARGET}.rustflags={:?}", remap::arguments(project)?))
}

/// Returns the adjustment of a build. The compiler searches for the linker on the search path.
fn adjust<'a>(
    linker: &BpfLinker,
    features: &'static [&'static str],
    flags: &'a str,
) -> Result<impl FnOnce(&mut Command) + 'a> {
    let path = search_path(&linker.program)?;
    Ok(move |cargo: &mut Command| {
        cargo.env("PATH", path).args(features).args(["--config", flags]);
    })
}

/// Returns the search path with the linker's folder in front.
fn search_path(linker: &Path) -> Result<std::ffi::OsString> {
    let folder = linker.parent().context("the linker has no folder")?;
    let rest = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(env::split_paths(&rest));
    env::join_paths(folders).with_context(|| format!("{} cannot be on a search path", folder.display()))
}
