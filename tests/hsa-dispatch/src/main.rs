//! The bundled minimal HSA dispatcher: workloads that report what they did.
//!
//! It takes the place of an application and its framework. Everything it submits goes through AMD's unmodified runtime to the GPU,
//! or to the simulated GPU of tests/kfd-sim. Its report is the truth that a trace is compared with.

mod arguments;
mod cli;
mod clock;
mod context;
mod copier;
mod error;
mod hip;
mod hsa;
mod kernels;
mod kfd;
mod log;
mod packet;
mod producer;
mod report;
mod workloads;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use cli::{Api, Cli};
use context::Context;
use error::Result;
use report::{AgentInfo, Outcome, RuntimeInfo, Summary};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.options.api {
        Api::Hsa => run(&cli),
        Api::Hip => hip::run(&cli),
        Api::Kfd => kfd::run(&cli),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hsa-dispatch: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if let Some(path) = &cli.options.wait_for {
        wait_for(path);
    }
    let context = Context::open(&cli.options)?;
    let mut outcome = Outcome::default();
    let result = cli.workload.run(&context, &mut outcome);
    if let Some(path) = &cli.options.log {
        log::write(path, Some(&context.kernels), &outcome.log)?;
    }
    let summary = Summary {
        api: "hsa",
        workload: cli.workload.name(),
        runtime: RuntimeInfo {
            library: context.runtime.library().display().to_string(),
            version: context.runtime.version()?,
        },
        agent: AgentInfo {
            name: context.gpu.name.clone(),
            gfx: context.gpu.gfx.clone(),
        },
        kernels: context.kernels.path.display().to_string(),
        pid: std::process::id(),
        outcome: outcome.summarised(),
        results: result
            .as_ref()
            .err()
            .map_or_else(|| "ok".to_owned(), ToString::to_string),
    };
    report::print(&summary, &cli.options.json, || line(&summary))?;
    if let Some(leave) = cli.options.leave.filter(|_| result.is_ok()) {
        leave.now();
    }
    result
}

/// Waits until a file exists, without a time limit.
fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Returns a one-line summary.
fn line(summary: &Summary) -> String {
    let outcome = &summary.outcome;
    format!(
        "{} on {}: {} dispatches, {} barriers, {} doorbells, {} copies in {} us: {}",
        summary.workload,
        summary.agent.gfx,
        outcome.dispatches,
        outcome.barriers,
        outcome.doorbells,
        outcome.copies,
        outcome.elapsed_ns / 1000,
        summary.results,
    )
}
