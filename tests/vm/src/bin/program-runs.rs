//! Runs a command, and writes what the kernel counted of each loaded eBPF program meanwhile, as JSON.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use aya::{
    programs::loaded_programs,
    sys::{Stats, enable_stats},
};
use clap::Parser;
use serde_json::{Value, json};

/// Run a command, and write how often each loaded eBPF program ran meanwhile, and for how long: a list of objects with `name`,
/// `runs` and `ns`.
///
/// The kernel keeps the first 15 bytes of a name. It also counts the code that a program calls.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The command.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("program-runs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the command's exit code.
fn run(cli: &Cli) -> Result<u8> {
    let counting = enable_stats(Stats::RunTime).context("the kernel does not count runs of programs")?;
    let (program, arguments) = cli.command.split_first().context("no command")?;
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let programs: Vec<Value> = loaded_programs().map(counts).collect::<Result<_>>()?;
    drop(counting);
    let text = serde_json::to_vec_pretty(&programs).context("cannot write JSON")?;
    fs::write(&cli.output, text).with_context(|| format!("cannot write {}", cli.output.display()))?;
    let code = status.code().context("a signal ended the command")?;
    u8::try_from(code).context("an exit code has 8 bits")
}

fn counts(program: Result<aya::programs::ProgramInfo, aya::programs::ProgramError>) -> Result<Value> {
    let program = program.context("cannot read what the kernel counted")?;
    Ok(json!({
        "name": program.name_as_str().context("a program has no name")?,
        "runs": program.run_count(),
        "ns": u64::try_from(program.run_time().as_nanos()).context("more than five centuries")?,
    }))
}
