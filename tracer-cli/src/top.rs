//! `tracer top TRACE`: a stored trace as it went, on a screen or as one picture.

mod replay;
mod screen;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use tracer_core::live::Picture;
use tracer_store::Trace;

use crate::cli::Top;
use replay::Replay;

/// Replays the trace until the user has enough, or with `--once` tells how it stands at its end.
pub fn run(options: &Top) -> anyhow::Result<ExitCode> {
    let trace = Trace::open(&options.trace)?;
    let mut replay = Replay::open(&trace, options.speed)?;
    if options.once {
        return print(&replay.end()?);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("setting up signal handlers")?;
    }
    screen::show(&mut replay, &stop)?;
    Ok(ExitCode::SUCCESS)
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
