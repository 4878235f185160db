//! `tracer record`: runs a command, or attaches to processes or the whole machine, and records the path of every kernel that they
//! submit.

pub mod manifest;
pub mod output;
mod probed;
mod progress;
mod recorder;
mod scheduler;

use std::{
    io::{self, Write},
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{
    pause::guardian::Guardian,
    script,
    target::{
        elsewhere::{self, Since},
        launch::Terminal,
    },
};
use tracer_core::foreign;
use tracer_files::Owner;
use tracer_store::{
    Placing, TraceWriter,
    manifest::{EndedBy, Target},
};

pub use recorder::{OnFailure, Outcome, Recorder};

use crate::{
    cli::Record,
    collect::Collector,
    event_log::live::LiveLog,
    exit,
    report::layout::Layout,
    say::{self, say},
    signals::{self, Signals, Wish},
    target::{Ending, Ready, Watched},
};

/// Interval between two updates of the progress line.
const PROGRESS: Duration = Duration::from_millis(500);

/// A completed recording.
pub struct Recorded {
    /// The command's exit status; `None` if the user stopped waiting for it, or if there was no command.
    status: Option<ExitStatus>,
    /// Whether tracer attached to processes or watched all of them instead of running a command.
    attached: bool,
    /// The result of the recording.
    pub outcome: Outcome,
}

/// Runs the command, records it, and prints a summary; or prints the script that captures elsewhere.
pub fn run(options: &Record, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    if let Some(library) = options.library.as_deref().filter(|_| options.script) {
        let script = script::for_library(library, options.capture.debuginfod)?;
        io::stdout().write_all(script.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let owner = output::owner(options.capture.as_root)?;
    let recorded = capture(options, owner, guardian)?;
    print_outcome(&recorded)?;
    Ok(ExitCode::from(code(&recorded)))
}

/// Runs the command and records it, into a trace of this owner.
pub fn capture(options: &Record, owner: Owner, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    signals::block_on(record(options, owner, guardian))
}

async fn record(options: &Record, owner: Owner, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    // The signal handlers come first: the command inherits none of them, and no signal arrives before the recorder is prepared.
    let mut signals = Signals::new()?;
    let ready = Ready::prepare(&options.capture, &options.command, Terminal::Shared, guardian)?;
    let subject = &ready.subject;
    // One machine is recorded many times.
    let several = subject.target == Target::System;
    let dir = output::directory(options.output.as_deref(), &subject.name, subject.pid, several);
    let placing = Placing {
        owner,
        mode: options.mode,
        overwrite: options.overwrite,
        row_memory: (options.row_memory as usize).saturating_mul(1 << 20),
    };
    let writer = TraceWriter::create_as(&dir, manifest::begin(subject.target.clone()), placing)?;
    ready.announce();
    let attached = !matches!(subject.target, Target::Command { .. });
    let zero = writer.manifest().started.monotonic_ns;
    // Lines of the log would break the line.
    let mut line = progress::Line::new(!options.log, writer.size_gauge());
    let log = options.log.then(|| LiveLog::start(zero)).transpose();
    let recorder = Recorder::new(writer, OnFailure::GoOn).with_log(log.context("starting the log")?);
    let collector = Collector::start(ready.session, recorder, &ready.there)?;
    let since = Since::now();
    let watched = match ready.start.go() {
        Ok(watched) => watched,
        Err(error) => {
            // A trace without content would block the next attempt.
            let (recorder, _) = collector.finish()?;
            if let Err(error) = recorder.discard() {
                log::warn!("cannot remove the empty trace {}: {error:#}", dir.display());
            }
            return Err(error);
        }
    };
    let ending = watch(watched, options.duration, &collector, &mut signals, &mut line).await?;
    line.ends();
    let finished = collector.finish();
    line.clear();
    let (recorder, mut inventory) = finished?;
    let alone = !attached && !options.capture.no_follow;
    if let Some(known) = recorder.idle_processes().filter(|_| alone) {
        inventory.warnings.extend(since.users(known).iter().map(elsewhere));
    }
    let outcome = recorder.finish(&inventory, &ending)?;
    for warning in &outcome.written.manifest.warnings {
        log::warn!("{warning}");
    }
    Ok(Recorded {
        status: ending.status,
        attached,
        outcome,
    })
}

/// Returns the warning about a process that may have worked for the command.
fn elsewhere(user: &elsewhere::User) -> String {
    format!(
        "no process of the command used a GPU, but process {} ({}), which is none of its children, began to use one meanwhile: \
         a daemon or a container runtime works elsewhere; record it with `sudo tracer record -a`, or with `-p {0}`",
        user.pid,
        foreign::from_bytes(&user.comm)
    )
}

/// Waits until the subject has exited, the duration is over, or the user ends the recording.
async fn watch(
    mut watched: Watched,
    duration: Option<Duration>,
    collector: &Collector<Recorder>,
    signals: &mut Signals,
    line: &mut progress::Line,
) -> anyhow::Result<Ending> {
    let command = watched.command();
    let enough = async {
        match duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let ended = watched.end();
    tokio::pin!(ended, enough);
    let mut ticks = tokio::time::interval(PROGRESS);
    let ending = loop {
        tokio::select! {
            ending = &mut ended => break ending?,
            () = &mut enough => break Ending::early(EndedBy::Duration),
            wish = signals.next(command.as_deref()) => if wish == Wish::Force {
                let name = signals.last().unwrap_or_default().to_owned();
                break Ending::early(EndedBy::Signal { name });
            },
            _ = ticks.tick(), if line.is_shown() => line.show(collector.progress()),
        }
    };
    Ok(ending)
}

/// Prints the path summary.
fn print_outcome(recorded: &Recorded) -> anyhow::Result<()> {
    let outcome = &recorded.outcome;
    let written = &outcome.written;
    let mut text = Vec::new();
    let layout = Layout::of(&io::stderr());
    crate::report::text::summary(&mut text, &written.manifest, &outcome.report, &[], layout)?;
    say::words(&String::from_utf8_lossy(&text));
    if outcome.idle && outcome.report.nothing.is_none() && !recorded.attached {
        say!(
            "note       no process of the command used an AMD GPU; `-a` also records what a daemon or a container runtime runs"
        );
    }
    let size = tracer_core::units::bytes(written.bytes);
    say!(
        "trace      {} ({size}); read it with `tracer report {0}`",
        foreign::line(written.dir.display())
    );
    Ok(())
}

/// Returns the command's exit code (0 if there was no command). A 0 becomes [`exit::NOT_PROBED`] if a queue had no probes.
fn code(recorded: &Recorded) -> u8 {
    let outcome = &recorded.outcome;
    let code = match recorded.status {
        Some(status) => exit::of_status(status),
        None if recorded.attached => 0,
        None => return exit::FORCED,
    };
    if code == 0 && outcome.blind {
        exit::NOT_PROBED
    } else {
        code
    }
}
