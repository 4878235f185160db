//! Commands and shells in virtual machines: builds everything that is needed and runs `vm-run` of `tests/vm`.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::build::{self, Profile};
use crate::project::Project;
use crate::setup::{self, Part, Series};

/// The exit code of `vm-run` if the machine itself fails. Otherwise it returns the command's exit code.
const FAILURE: u8 = 125;

/// What to run, and where.
#[derive(Args)]
pub struct Vm {
    /// The kernel: 6.1, 6.12 or 7.x; or `shell`, `build` (only build what the machines need).
    #[arg(value_name = "KERNEL|shell|build")]
    target: String,
    /// The kernel that the shell runs on.
    #[arg(value_name = "KERNEL")]
    kernel: Option<Series>,
    /// The command.
    #[arg(last = true)]
    command: Vec<String>,
    /// Do not load amdgpu: no /dev/kfd.
    #[arg(long)]
    no_amdgpu: bool,
    /// Do not load the mock scheduler; with --no-amdgpu, the kernel has no DRM scheduler at all.
    #[arg(long)]
    no_mock: bool,
    /// Names of the mock's rings, such as gfx_0.0.0,comp_1.0.0.
    #[arg(long, value_name = "NAMES")]
    rings: Option<String>,
    /// Memory in MiB (default 2048); what the command writes to files lies there too.
    #[arg(long, value_name = "MIB")]
    memory: Option<u32>,
    /// Processors (default 2).
    #[arg(long, value_name = "N")]
    processors: Option<u32>,
    /// Let the clock advance by 1 ns with each instruction: durations are numbers of instructions. Needs --processors=1.
    #[arg(long)]
    count_instructions: bool,
    /// Seconds that the command may take (default 600).
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// A folder that the machine may write to; may be given several times. `vm` in cargo's target folder always is one.
    #[arg(long, value_name = "FOLDER")]
    share: Vec<PathBuf>,
    /// Show the console and how long each step took, on standard error.
    #[arg(short, long)]
    verbose: bool,
}

/// Runs the command in a virtual machine. Its exit code becomes this program's exit code.
pub fn run(project: &Project, vm: &Vm) -> Result<ExitCode> {
    let kernel = vm.series()?;
    setup::run(project, &Part::ALL)?;
    setup::run(project, &[Part::Vm])?;
    build::run(project, Profile::Dev)?;
    build::mock(project)?;
    let Some(kernel) = kernel else {
        return Ok(ExitCode::SUCCESS);
    };
    let shared = project.target().join("vm");
    std::fs::create_dir_all(&shared).with_context(|| format!("cannot create {}", shared.display()))?;
    let mut command = Command::new(project.bin_dir().join("vm-run"));
    command.envs(project.variables()).env("TRACER_CACHE", project.cache());
    command.args(vm.options()).arg("--share").arg(shared).arg(kernel.name());
    if !vm.command.is_empty() {
        command.arg("--").args(&vm.command);
    }
    let status = command.status().context("cannot start vm-run")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(FAILURE)))
}

impl Vm {
    /// Creates options that run a command on a kernel, with rings of these names.
    pub fn new(kernel: &str, command: &[&str], rings: &str) -> Self {
        Self {
            target: kernel.to_owned(),
            kernel: None,
            command: command.iter().map(|&word| word.to_owned()).collect(),
            no_amdgpu: false,
            no_mock: false,
            rings: Some(rings.to_owned()),
            memory: None,
            processors: None,
            count_instructions: false,
            // The callers run many programs, and an emulated processor is slow.
            timeout: Some(1800),
            share: Vec::new(),
            verbose: false,
        }
    }

    /// Returns the kernel to boot; `None` if only a build is requested.
    fn series(&self) -> Result<Option<Series>> {
        match (self.target.as_str(), self.kernel, self.command.is_empty()) {
            ("build", None, true) => Ok(None),
            ("shell", Some(kernel), true) => Ok(Some(kernel)),
            ("shell", None, _) => bail!("which kernel? `cargo xtask vm shell 6.12`"),
            (name, None, false) => match Series::from_str(name, false) {
                Ok(kernel) => Ok(Some(kernel)),
                Err(_) => bail!("no kernel {name}: there are 6.1, 6.12 and 7.x"),
            },
            (name, None, true) => {
                bail!("no command given; use `cargo xtask vm {name} -- COMMAND` or `cargo xtask vm shell {name}`")
            }
            _ => bail!("either `cargo xtask vm KERNEL -- COMMAND` or `cargo xtask vm shell KERNEL`"),
        }
    }

    /// Returns the options in the form that `vm-run` takes.
    fn options(&self) -> Vec<String> {
        let flags = [
            ("--no-amdgpu", self.no_amdgpu),
            ("--no-mock", self.no_mock),
            ("--count-instructions", self.count_instructions),
            ("--verbose", self.verbose),
        ];
        let flags = flags
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name.to_owned());
        let values = [
            ("--rings", self.rings.clone()),
            ("--memory", self.memory.map(|value| value.to_string())),
            ("--processors", self.processors.map(|value| value.to_string())),
            ("--timeout", self.timeout.map(|value| value.to_string())),
        ];
        let values = values
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        let shares = self.share.iter().map(|path| format!("--share={}", path.display()));
        flags.chain(values).chain(shares).collect()
    }
}
