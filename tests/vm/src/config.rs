//! The configuration of a virtual machine.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::kernel::{Kernel, Module};

/// Default memory, MiB.
const MEMORY_MIB: u32 = 2048;
/// The time within which the agent must be ready: twenty times the time on an idle machine.
const BOOT_TIMEOUT: Duration = Duration::from_secs(60);

/// A virtual machine to boot.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its kernel.
    pub kernel: Kernel,
    /// Modules to load, in this order.
    pub modules: Vec<Module>,
    /// Names of the mock's rings, comma-separated; the module's default if empty.
    pub rings: String,
    /// Memory, MiB. It also holds what commands write into files.
    pub memory_mib: u32,
    /// Processors.
    pub processors: u32,
    /// Folders of the host that the machine may write to. It sees all other folders, but its writes to them stay in the machine.
    pub shared: Vec<PathBuf>,
    /// The time within which the agent must be ready.
    pub boot_timeout: Duration,
    /// Whether the machine's clock advances by 1 ns with each instruction that its processor executes, so that durations count
    /// instructions and hardly differ between runs. Needs a machine with one processor. A machine that is idle does not wait.
    pub counts_instructions: bool,
    /// Whether the console is this process's terminal, for [`crate::Vm::terminal`].
    pub interactive: bool,
    /// Whether the console is also copied to standard error.
    pub verbose: bool,
    /// The program that runs commands in the machine.
    pub agent: PathBuf,
}

impl Config {
    /// Returns a machine with amdgpu and the mock loaded.
    ///
    /// Fails if the agent is not built. The agent must be in the folder that `TRACER_BIN_DIR` names, else beside or one folder
    /// above the running program, where cargo puts it.
    pub fn new(kernel: Kernel) -> Result<Self> {
        Ok(Self {
            kernel,
            modules: vec![Module::Amdgpu, Module::Mock],
            rings: String::new(),
            memory_mib: MEMORY_MIB,
            processors: 2,
            shared: Vec::new(),
            boot_timeout: BOOT_TIMEOUT,
            counts_instructions: false,
            interactive: false,
            verbose: false,
            agent: find_agent()?,
        })
    }
}

fn find_agent() -> Result<PathBuf> {
    let folders = match env::var_os("TRACER_BIN_DIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => {
            let program = env::current_exe().context("cannot learn this program's path")?;
            program.ancestors().skip(1).take(2).map(PathBuf::from).collect()
        }
    };
    let found = folders
        .iter()
        .map(|folder| folder.join("vm-agent"))
        .find(|file| file.is_file());
    let agent = found.with_context(|| format!("no vm-agent in {folders:?}: run `cargo xtask build`"))?;
    let agent = agent.canonicalize().context("cannot resolve the agent's path")?;
    // The kernel's command line is split at spaces.
    ensure!(
        !agent.to_string_lossy().contains(char::is_whitespace),
        "{} has a space in its path, which a kernel's command line cannot carry",
        agent.display()
    );
    Ok(agent)
}
