//! `tracer top`: shows queue by queue what happens now, or what happened in a stored trace; on a screen or as one picture.

mod live;
mod recording;
mod replay;
mod screen;

use std::{process::ExitCode, sync::atomic::Ordering};

use tracer_capture::pause::guardian::Guardian;
use tracer_core::{
    foreign::{Json, Terminal},
    live::Picture,
    summary::Capabilities,
};
use tracer_store::Trace;

use crate::{
    cli::Top,
    say::{self, say},
    signals::Signals,
};
use live::Watch;
use replay::Replay;

/// Shows the view until the user quits, or with `--once` prints the state at the end.
pub fn run(options: &Top, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    if !options.once {
        screen::require()?;
    }
    match &options.trace {
        Some(trace) => {
            let trace = Trace::open(trace)?;
            let mut replay = Replay::open(&trace, options.speed)?;
            if options.once {
                let picture = replay.end()?;
                for warning in &replay.warnings {
                    log::warn!("{warning}");
                }
                return print(&picture);
            }
            screen::show(&mut replay, &Signals::flag()?)?;
            Ok(ExitCode::SUCCESS)
        }
        None => watch(options, guardian),
    }
}

fn watch(options: &Top, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    // The signal handlers come first: no signal arrives before tracer is prepared.
    let stop = Signals::flag()?;
    let mut watch = Watch::start(options, guardian)?;
    let mut shown = Ok(());
    if options.once {
        while !stop.load(Ordering::Acquire) && !watch.is_over()? {
            std::thread::sleep(live::LOOK);
        }
    } else {
        shown = screen::show(&mut watch, &stop);
    }
    // This also runs after a failure of the screen: what was recorded is written completely.
    watch.end()?;
    shown?;
    if let Some(said) = watch.said() {
        say!("{}", Terminal(&said));
    }
    if let Some(pid) = watch.goes_on() {
        say!("the command continues as process {pid} without tracer; `kill {pid}` ends it");
    }
    if options.once {
        return print(&watch.current());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns in words what is not watched: a view without it must say so.
fn blind(capabilities: &Capabilities) -> Vec<String> {
    capabilities.blind().into_iter().map(str::to_owned).collect()
}

/// Prints one picture, for a script.
fn print(picture: &Picture) -> anyhow::Result<ExitCode> {
    say::print(&format!("{}\n", Json(&serde_json::to_string(picture)?)))?;
    Ok(ExitCode::SUCCESS)
}
