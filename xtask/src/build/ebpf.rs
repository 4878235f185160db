//! The eBPF objects that the tracer loads: the usual one, and one whose programs say what they decide.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::cross::CrossBuild;
use crate::project::Project;
use crate::setup::BpfLinker;

/// Builds `tracer-ebpf`, without and with its diagnostics.
pub fn build(project: &Project, linker: &BpfLinker) -> Result<()> {
    one(project, linker, project.ebpf_object(), &[])?;
    one(project, linker, project.ebpf_log_object(), &["--features", "log"])
}

fn one(project: &Project, linker: &BpfLinker, output: PathBuf, features: &[&str]) -> Result<()> {
    let krate = project.root().join("tracer-ebpf");
    let build = CrossBuild {
        sources: vec![krate.clone(), project.root().join("tracer-common")],
        krate,
        target: "bpfel-unknown-none",
        target_dir: project.target().join("ebpf"),
        artifact: "tracer-ebpf",
        output,
        settings: format!("{} {}", linker.program.display(), features.join(" ")),
    };
    let path = search_path(&linker.program)?;
    // The compiler looks for the linker on the search path.
    build.run(project, |cargo| {
        cargo.env("PATH", path).args(features);
    })
}

/// The search path with the linker's folder in front.
fn search_path(linker: &Path) -> Result<std::ffi::OsString> {
    let folder = linker.parent().context("the linker has no folder")?;
    let rest = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(env::split_paths(&rest));
    env::join_paths(folders).with_context(|| format!("{} cannot be on a search path", folder.display()))
}
