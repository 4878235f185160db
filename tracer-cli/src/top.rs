//! `tracer top`: what goes on, queue by queue, or a stored trace as it went; on a screen or as one picture.

mod later;
mod live;
mod replay;
mod screen;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;
use tracer_capture::guardian::Guardian;
use tracer_core::{live::Picture, summary::Capabilities};
use tracer_store::Trace;

use crate::cli::Top;
use live::Watch;
use replay::Replay;

/// Shows it until the user has enough, or with `--once` tells how it stands at its end.
pub fn run(options: &Top, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    if !options.once {
        screen::require()?;
    }
    match &options.trace {
        Some(trace) => {
            let trace = Trace::open(trace)?;
            let mut replay = Replay::open(&trace, options.speed)?;
            if options.once {
                return print(&replay.end()?);
            }
            screen::show(&mut replay, &stop()?)?;
            Ok(ExitCode::SUCCESS)
        }
        None => watch(options, guardian),
    }
}

/// Set by the signals that end a program.
fn stop() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("setting up signal handlers")?;
    }
    Ok(stop)
}

fn watch(options: &Top, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    // Handlers first: no signal finds it unprepared.
    let stop = stop()?;
    let mut watch = Watch::start(options, guardian)?;
    if options.once {
        while !stop.load(Ordering::Acquire) && !watch.is_over()? {
            std::thread::sleep(live::LOOK);
        }
    } else {
        screen::show(&mut watch, &stop)?;
    }
    watch.end()?;
    if let Some(said) = watch.said() {
        eprintln!("{said}");
    }
    if let Some(pid) = watch.goes_on() {
        eprintln!("the command goes on as process {pid}, which nobody watches any more; `kill {pid}` ends it");
    }
    if options.once {
        return print(&watch.look());
    }
    Ok(ExitCode::SUCCESS)
}

/// What is not watched, in words: a view without it must say so.
fn blind(capabilities: &Capabilities) -> Vec<String> {
    capabilities.blind().into_iter().map(str::to_owned).collect()
}

/// One picture, for a script.
fn print(picture: &Picture) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer(&mut out, picture)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out));
    // A reader that has seen enough (`| head`) is no failure.
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        done => done.context("writing the picture").map(|()| ExitCode::SUCCESS),
    }
}
