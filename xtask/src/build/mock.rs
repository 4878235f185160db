//! The mock scheduler, a kernel module, for each kernel that virtual machines run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cmd;
use crate::project::Project;
use crate::setup::VmKernel;

/// The folder of the module's sources, in the project's folder.
const SOURCES: &str = "tests/drm-sched-mock";
/// The file name of the module.
const MODULE: &str = "drm-sched-mock.ko";

/// Builds the module for every kernel for which its sources or the kernel changed.
pub fn build(project: &Project) -> Result<()> {
    for kernel in VmKernel::all(project) {
        build_for(project, &kernel).with_context(|| format!("cannot build {MODULE} for {}", kernel.series().name()))?;
    }
    Ok(())
}

fn build_for(project: &Project, kernel: &VmKernel) -> Result<()> {
    let folder = project.drm_sched_mock().join(kernel.series().name());
    let headers = kernel.headers()?;
    let sources = sources(&project.root().join(SOURCES))?;
    // The inputs of the module: the texts, and the kernel by the name of its headers.
    let made_of = format!(
        "{}\n{}",
        headers.display(),
        sources.iter().map(|(_, text)| text.as_str()).collect::<String>()
    );
    let stamp = folder.join("made-of");
    if folder.join(MODULE).is_file() && fs::read_to_string(&stamp).is_ok_and(|known| known == made_of) {
        return Ok(());
    }
    cmd::require("make", "run `apt-get install build-essential`")?;
    cmd::remove_all(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, text) in &sources {
        fs::write(folder.join(name), text)?;
    }
    eprintln!(
        "==> building {MODULE} for {}",
        headers.file_name().unwrap_or_default().to_string_lossy()
    );
    cmd::read(&mut make(&headers, &folder))?;
    fs::write(&stamp, made_of).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the make command. Debian built its kernels with compilers other than this machine's, whose options must not be
/// requested.
fn make(headers: &Path, folder: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("-s")
        .arg("-C")
        .arg(headers)
        .arg(format!("M={}", folder.display()));
    // The alignment of functions is an option of gcc 13 and later. Types for module BTF need the program pahole.
    make.args([
        "CC=gcc",
        "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
    ]);
    make.args(["KCFLAGS=-Wno-attributes", "modules"]);
    // If an outer make set these variables, this make would take them for its own.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    make
}

/// Returns the names and texts of the module's sources, sorted.
fn sources(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "Kbuild" || name.ends_with(".c") || name.ends_with(".h") {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            sources.push((name, text));
        }
    }
    sources.sort();
    Ok(sources)
}
