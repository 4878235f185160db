//! The eBPF object that the tracer loads.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};

use super::cross::CrossBuild;
use crate::project::Project;
use crate::setup::BpfLinker;

/// Builds `tracer-ebpf`.
pub fn build(project: &Project, linker: &BpfLinker) -> Result<()> {
    let krate = project.root().join("tracer-ebpf");
    let output = project.ebpf_object();
    let build = CrossBuild {
        sources: vec![krate.clone(), project.root().join("tracer-common")],
        krate,
        target: "bpfel-unknown-none",
        target_dir: project.target().join("ebpf"),
        artifact: "tracer-ebpf",
        output,
        settings: linker.program.to_string_lossy().into_owned(),
    };
    let path = search_path(&linker.program)?;
    // The compiler looks for the linker on the search path.
    build.run(project, |cargo| {
        cargo.env("PATH", path);
    })
}

/// The search path with the linker's folder in front.
fn search_path(linker: &Path) -> Result<std::ffi::OsString> {
    let folder = linker.parent().context("the linker has no folder")?;
    let rest = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(env::split_paths(&rest));
    env::join_paths(folders).with_context(|| format!("{} cannot be on a search path", folder.display()))
}
