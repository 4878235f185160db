//! The linker of eBPF programs. It must read the bitcode of this compiler's LLVM.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{Install, tool::Tool};
use crate::cmd;
use crate::project::Project;

/// The name of the program.
const NAME: &str = "bpf-linker";

/// The variable with the path of a linker to use instead.
const VARIABLE: &str = "TRACER_BPF_LINKER";

/// Releases of bpf-linker by the major version of LLVM that they use from rustc itself.
const RELEASES: [(u32, &str); 1] = [(22, "0.10.3")];

/// The linker to use with one compiler.
pub struct BpfLinker {
    /// The path of the program.
    pub program: PathBuf,
    /// What to install there; `None` for the user's own linker.
    tool: Option<Tool>,
}

impl BpfLinker {
    /// Returns the linker that the environment names, otherwise the one for this compiler.
    pub fn choose(project: &Project) -> Result<Self> {
        let toolchain = project.toolchain();
        if let Some(program) = env::var_os(VARIABLE).filter(|program| !program.is_empty()) {
            return Ok(Self {
                program: program.into(),
                tool: None,
            });
        }
        let release = release_for(toolchain.llvm_major).with_context(|| {
            format!(
                "no bpf-linker is known for LLVM {} of Rust {}: install one that was built with this LLVM \
                 and set {VARIABLE} to its path",
                toolchain.llvm_major, toolchain.release
            )
        })?;
        let tool = Tool::of(project, NAME, release);
        Ok(Self {
            program: tool.program(),
            tool: Some(tool),
        })
    }
}

impl Install for BpfLinker {
    fn name(&self) -> String {
        match &self.tool {
            Some(tool) => tool.name(),
            None => self.program.display().to_string(),
        }
    }

    fn is_ready(&self) -> bool {
        // The compiler finds the linker by this name.
        self.program.ends_with(NAME) && cmd::is_executable(&self.program)
    }

    fn install(&self, project: &Project) -> Result<()> {
        let Some(tool) = &self.tool else {
            bail!(
                "{} is no program named {NAME}: correct or unset {VARIABLE}",
                self.program.display()
            );
        };
        tool.install(project)
    }
}

fn release_for(llvm_major: u32) -> Option<&'static str> {
    RELEASES
        .iter()
        .find(|(llvm, _)| *llvm == llvm_major)
        .map(|(_, release)| *release)
}

#[cfg(test)]
mod tests {
    use super::release_for;

    #[test]
    fn the_linker_follows_the_compilers_llvm() {
        assert_eq!(release_for(22), Some("0.10.3"));
        assert_eq!(release_for(1), None);
    }
}
