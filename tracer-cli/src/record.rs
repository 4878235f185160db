//! `tracer record`: runs a command, or attaches to processes or the whole machine, and records the path of every kernel that they submit.

pub mod manifest;
pub mod output;
mod recorder;
mod scheduler;

use std::{
    io::IsTerminal,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{guardian::Guardian, launch::Terminal};
use tracer_store::TraceWriter;

pub use recorder::{Outcome, Recorder};

use crate::{
    aim::{Ready, Subject, Watched},
    cli::Record,
    collect::Collector,
    exit,
    signals::{Signals, Wish},
};

/// How often the progress line is renewed.
const PROGRESS: Duration = Duration::from_millis(500);

/// A recording that ended.
pub struct Recorded {
    /// How the command ended; `None` if the user would not wait, or there was none.
    status: Option<ExitStatus>,
    /// Whether processes were attached to, or all watched, and no command run.
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
    let ready = Ready::prepare(&options.capture, &options.command, Terminal::Shared, guardian)?;
    let subject = &ready.subject;
    let wanted = options.output.clone().or_else(|| subject.place());
    let dir = output::directory(wanted.as_deref(), &subject.name(), subject.pid());
    let writer = TraceWriter::create(&dir, manifest::begin(subject.target()), options.overwrite)?;
    ready.tell();
    let Ready {
        session,
        there,
        subject,
    } = ready;
    let attached = !matches!(subject, Subject::Command { .. });
    let collector = Collector::start(session, Recorder::new(writer), &there)?;
    let watched = match subject.go() {
        Ok(watched) => watched,
        Err(error) => {
            // A trace of nothing would be in the way of the next attempt.
            let (recorder, inventory) = collector.finish()?;
            drop(recorder.finish(&inventory, None));
            output::remove(&dir);
            return Err(error);
        }
    };
    let status = watch(watched, options.duration, &collector, &mut signals).await?;
    let (recorder, inventory) = collector.finish()?;
    let outcome = recorder.finish(&inventory, status)?;
    if let Some(user) = options.capture.user() {
        output::give_to(&dir, &user);
    }
    for warning in &outcome.manifest.warnings {
        log::warn!("{warning}");
    }
    Ok(Recorded {
        status,
        attached,
        outcome,
    })
}

/// Waits for the end, of what is watched, of the time, or of the user's patience; the command's status if it ended.
async fn watch(
    mut watched: Watched,
    duration: Option<Duration>,
    collector: &Collector<Recorder>,
    signals: &mut Signals,
) -> anyhow::Result<Option<ExitStatus>> {
    let command = watched.command();
    let enough = async {
        match duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let ended = watched.end();
    tokio::pin!(ended, enough);
    let terminal = std::io::stderr().is_terminal();
    let mut ticks = tokio::time::interval(PROGRESS);
    let status = loop {
        tokio::select! {
            end = &mut ended => break end?.status,
            () = &mut enough => break None,
            wish = signals.next(command) => if wish == Wish::Force { break None },
            _ = ticks.tick(), if terminal => eprint!("\r\x1b[K{}", collector.progress()),
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
