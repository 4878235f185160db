//! Runs one command, or a shell, in a virtual machine. `cargo xtask vm` starts this program.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tracer_vm::{Command, Config, Kernel, Module, RestoreTerminal, Stream, Vm};

/// The exit code when the machine itself fails. Otherwise the exit code is the command's.
const FAILURE: u8 = 125;

/// Run a command of this machine on one of Debian's kernels, in a virtual machine that sees all of this machine's files.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The kernel: 6.1, 6.12 or 7.x.
    kernel: String,
    /// The command; a shell on the terminal without one.
    #[arg(last = true)]
    command: Vec<String>,
    /// Do not load amdgpu: no /dev/kfd.
    #[arg(long)]
    no_amdgpu: bool,
    /// Do not load the mock scheduler; with --no-amdgpu, the kernel has no DRM scheduler at all.
    #[arg(long)]
    no_mock: bool,
    /// Names of the mock's rings, such as gfx_0.0.0,comp_1.0.0.
    #[arg(long, default_value = "", value_name = "NAMES")]
    rings: String,
    /// Memory in MiB; what the command writes to files lies there too.
    #[arg(long, default_value_t = 2048, value_name = "MIB")]
    memory: u32,
    /// Processors.
    #[arg(long, default_value_t = 2, value_name = "N")]
    processors: u32,
    /// Let the clock advance by 1 ns with each instruction: durations are numbers of instructions. Needs --processors=1.
    #[arg(long)]
    count_instructions: bool,
    /// Seconds that the command may take.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u64,
    /// A folder that the machine may write to, for everyone to see; may be given several times.
    #[arg(long, value_name = "FOLDER")]
    share: Vec<PathBuf>,
    /// Show the console and how long each step took, on standard error.
    #[arg(short, long)]
    verbose: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(FAILURE)),
        Err(error) => {
            eprintln!("vm-run: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}

fn run(cli: Cli) -> Result<i32> {
    let mut config = Config::new(Kernel::find(&cli.kernel)?)?;
    config.modules.retain(|module| match module {
        Module::Amdgpu => !cli.no_amdgpu,
        Module::Mock => !cli.no_mock,
    });
    config.rings = cli.rings;
    config.memory_mib = cli.memory;
    config.processors = cli.processors;
    config.counts_instructions = cli.count_instructions;
    config.shared = cli.share;
    config.verbose = cli.verbose;
    let Some((program, arguments)) = cli.command.split_first() else {
        return shell(config);
    };
    let mut vm = boot(&config)?;
    let command = Command::new(program)
        .args(arguments)
        .timeout(Duration::from_secs(cli.timeout));
    let mut lost = Ok(());
    let output = vm.stream(&command, &mut |stream, bytes| {
        let written = match stream {
            Stream::Stdout => write_now(io::stdout(), bytes),
            Stream::Stderr => write_now(io::stderr(), bytes),
        };
        if lost.is_ok() {
            lost = written;
        }
    })?;
    if config.verbose {
        eprintln!("vm-run: the command took {:.2} s", output.duration.as_secs_f64());
    }
    lost.context("cannot pass on the command's output")?;
    Ok(output.code)
}

fn shell(mut config: Config) -> Result<i32> {
    ensure!(
        io::stdin().is_terminal(),
        "a shell needs a terminal: give a command after --"
    );
    let _restore = RestoreTerminal::new().context("cannot read the terminal's state")?;
    config.interactive = true;
    boot(&config)?.terminal(&Command::new("/bin/bash").arg("-l"))
}

fn boot(config: &Config) -> Result<Vm> {
    let vm = Vm::boot(config)?;
    if config.verbose {
        let (wall, guest) = vm.boot_time();
        let (wall, guest) = (wall.as_secs_f64(), guest.as_secs_f64());
        eprintln!(
            "vm-run: {} was up after {wall:.2} s ({guest:.2} s by its clock)",
            vm.release()
        );
        for (module, time) in vm.load_times() {
            eprintln!("vm-run: {module:?} loaded in {:.2} s", time.as_secs_f64());
        }
    }
    Ok(vm)
}

fn write_now(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
