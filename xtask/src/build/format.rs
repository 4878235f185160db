//! The format of the sources.

use anyhow::Result;

use crate::cargo;
use crate::cmd;
use crate::project::Project;

/// Crates that the workspace excludes, since they are built for other targets.
const EXCLUDED: [&str; 2] = ["tracer-ebpf", "tests/gpu-kernels"];

/// Fails if `cargo fmt` would change a source. Shows what it would change.
pub fn check(project: &Project) -> Result<()> {
    cmd::run(cargo::workspace(project).args(["fmt", "--all", "--check"]))?;
    for folder in EXCLUDED {
        let manifest = project.root().join(folder).join("Cargo.toml");
        cmd::run(
            cargo::workspace(project)
                .args(["fmt", "--check", "--manifest-path"])
                .arg(manifest),
        )?;
    }
    Ok(())
}
