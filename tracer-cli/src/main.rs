//! The `tracer` binary: thin commands over the workspace's other crates.

mod cli;
mod collect;
mod diff;
#[cfg(test)]
mod docs;
mod doctor;
mod event_log;
mod exit;
mod export;
mod generate;
mod import;
mod pager;
mod path;
mod query;
mod record;
mod report;
mod say;
mod scratch;
mod serve;
mod signals;
mod target;
mod top;
mod traces;
mod units;
mod verify;
mod window;

use std::process::ExitCode;

use clap::Parser;
use scratch::Scratch;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // This comes before any thread is started: the guardian is a fork of this process.
    let captures = match &cli.command {
        cli::Command::Record(options) => !options.script,
        cli::Command::Serve(_) => true,
        cli::Command::Top(options) => options.is_live(),
        cli::Command::Verify(options) => options.records(),
        cli::Command::Report(_)
        | cli::Command::Path(_)
        | cli::Command::Log(_)
        | cli::Command::Query(_)
        | cli::Command::Diff(_)
        | cli::Command::Export(_)
        | cli::Command::Import(_)
        | cli::Command::Doctor(_)
        | cli::Command::Generate { .. } => false,
    };
    let guardian = if captures { target::guardian() } else { Ok(None) };
    // This comes after the guardian: the child that it forks closes the guardian's pipe, so that both processes end independently.
    let scratch = match &cli.command {
        // SAFETY: no thread has been started yet.
        cli::Command::Verify(options) if options.needs_scratch() => unsafe { Scratch::create().map(Some) },
        _ => Ok(None),
    };
    say::log(cli.verbosity());
    let done = match cli.command {
        cli::Command::Record(options) => guardian.and_then(|guardian| record::run(&options, guardian)),
        cli::Command::Report(options) => report::run(&options),
        cli::Command::Path(options) => path::run(&options),
        cli::Command::Log(options) => event_log::run(&options),
        cli::Command::Query(options) => query::run(&options),
        cli::Command::Diff(options) => diff::run(&options),
        cli::Command::Export(options) => export::run(&options),
        cli::Command::Import(options) => import::run(&options),
        cli::Command::Top(options) => guardian.and_then(|guardian| top::run(&options, guardian)),
        cli::Command::Serve(options) => guardian.and_then(|guardian| serve::run(&options, guardian)),
        cli::Command::Verify(options) => scratch.and_then(|scratch| verify::run(&options, guardian?, scratch.as_ref())),
        cli::Command::Doctor(options) => Ok(doctor::run(&options)),
        cli::Command::Generate { share } => generate::run(&share),
    };
    done.unwrap_or_else(|error| {
        say::error(&error);
        exit::of_error(&error)
    })
}
