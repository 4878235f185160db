//! `tracer record`: runs a command, or attaches to processes, and records the path of every kernel that they submit.

mod attach;
mod looks;
pub mod manifest;
pub mod output;
mod recorder;
mod scheduler;
pub mod signals;

use std::{
    ffi::OsString,
    io::IsTerminal,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{
    guardian::Guardian,
    launch::{Running, User, Waiting},
    session::{self, Session},
};
use tracer_store::TraceWriter;

use crate::{
    cli::{Detail, Record},
    exit,
};
use recorder::{Ending, Outcome, Recorder};
use signals::{Signals, Wish};

/// How often the progress line is renewed.
const PROGRESS: Duration = Duration::from_millis(500);

/// Forks the process that lets go on whatever a dead recorder left stopped.
pub fn guardian() -> anyhow::Result<Option<Guardian>> {
    // SAFETY: called first thing in `main`, before any thread is started.
    Ok(Some(unsafe { Guardian::start() }?))
}

/// A recording that ended.
pub struct Recorded {
    /// How the command ended; `None` if the user would not wait, or there was none.
    status: Option<ExitStatus>,
    /// Whether processes were attached to, and no command run.
    attached: bool,
    /// What came of it.
    pub outcome: Outcome,
}

/// Runs the command, records it, and tells what was seen.
pub fn run(options: &Record, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    let recorded = capture(options, guardian)?;
    tell(&recorded.outcome)?;
    Ok(ExitCode::from(code(&recorded)))
}

/// Runs the command and records it.
pub fn capture(options: &Record, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting tokio")?;
    runtime.block_on(record(options, guardian))
}

async fn record(options: &Record, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    // Handlers first: the command inherits none of them, and no signal finds the recorder unprepared.
    let mut signals = Signals::new()?;
    let session_options = session::Options {
        reserves: options.detail == Detail::Full,
        api: options.api.into(),
        follow: !options.no_follow,
        debuginfod: options.debuginfod,
        diagnostics: log::log_enabled!(log::Level::Debug),
        buffer_bytes: (options.buffer << 20).next_power_of_two(),
    };
    if !options.pid.is_empty() {
        return attach::record(options, session_options, guardian, signals).await;
    }
    let mut session = Session::start(session_options, guardian)?;
    let user = if options.as_root { None } else { User::invoking() };
    let waiting = Waiting::spawn(&options.command, user.as_ref())?;
    let program = options.command.first().map(OsString::as_os_str).unwrap_or_default();
    let dir = output::directory(options.output.as_deref(), program, waiting.pid());
    let target = manifest::command(&options.command);
    let writer = TraceWriter::create(&dir, manifest::begin(target), options.overwrite)?;
    session.trace(waiting.pid())?;
    let recorder = Recorder::start(session, writer, &[])?;
    let running = match waiting.go() {
        Ok(running) => running,
        Err(error) => {
            // A trace of nothing would be in the way of the next attempt.
            drop(recorder.finish(Ending::default()));
            output::remove(&dir);
            return Err(error.into());
        }
    };
    let status = watch(running, &recorder, &mut signals).await?;
    let outcome = recorder.finish(Ending { status })?;
    if let Some(user) = &user {
        output::give_to(&dir, user);
    }
    for warning in &outcome.manifest.warnings {
        log::warn!("{warning}");
    }
    Ok(Recorded {
        status,
        attached: false,
        outcome,
    })
}

/// Waits for the command's end; `None` if the user would not.
async fn watch(running: Running, recorder: &Recorder, signals: &mut Signals) -> anyhow::Result<Option<ExitStatus>> {
    let pid = running.pid;
    let mut ended = tokio::task::spawn_blocking(move || {
        loop {
            if let Some(status) = running.wait(Duration::from_secs(3600)).transpose() {
                return status;
            }
        }
    });
    let terminal = std::io::stderr().is_terminal();
    let mut ticks = tokio::time::interval(PROGRESS);
    let status = loop {
        tokio::select! {
            status = &mut ended => break Some(status.context("waiting for the command")??),
            wish = signals.next(pid) => if wish == Wish::Force { break None },
            _ = ticks.tick(), if terminal => eprint!("\r\x1b[K{}", recorder.progress()),
        }
    };
    if terminal {
        eprint!("\r\x1b[K");
    }
    Ok(status)
}

/// The path summary.
fn tell(outcome: &Outcome) -> anyhow::Result<()> {
    let mut text = Vec::new();
    crate::report::text::summary(&mut text, &outcome.manifest, &outcome.report)?;
    eprint!("{}", String::from_utf8_lossy(&text));
    let size = crate::units::bytes(outcome.written.bytes);
    eprintln!(
        "trace      {} ({size}); read it with `tracer report {0}`",
        outcome.written.dir.display()
    );
    Ok(())
}

/// The command's exit code (0 if there was none), unless it says that all is well when nothing could be seen.
fn code(recorded: &Recorded) -> u8 {
    let outcome = &recorded.outcome;
    let code = match recorded.status {
        Some(status) => exit::of_status(status),
        None if recorded.attached => 0,
        None => return exit::FORCED,
    };
    // By the last resort some are seen, though their number is unknown.
    let seen = outcome
        .manifest
        .probes
        .iter()
        .any(|p| p.family == "doorbell" && p.attached);
    let blind = !outcome.manifest.libraries.is_empty() && outcome.report.doorbells.total.is_none() && !seen;
    if code == 0 && blind { exit::NOTHING_SEEN } else { code }
}
