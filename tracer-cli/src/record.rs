//! `tracer record`: runs a command, or attaches to processes or the whole machine, and records the path of every kernel that they
//! submit.

pub mod manifest;
pub mod output;
mod probed;
mod recorder;
mod scheduler;

use std::{
    io::IsTerminal,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{
    pause::guardian::Guardian,
    target::{
        elsewhere::{self, Since},
        launch::Terminal,
    },
};
use tracer_core::foreign;
use tracer_store::{Placing, TraceWriter, manifest::EndedBy};

use manifest::Ending;
pub use recorder::{OnFailure, Outcome, Recorder};

use crate::{
    cli::Record,
    collect::Collector,
    exit,
    say::{self, say},
    signals::{Signals, Wish},
    target::{Ready, Subject, Watched},
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

/// Converts MiB to bytes.
pub fn row_memory(mib: u32) -> usize {
    (mib as usize).saturating_mul(1 << 20)
}

/// Runs the command, records it, and prints a summary.
pub fn run(options: &Record, guardian: Option<Guardian>) -> anyhow::Result<ExitCode> {
    let placing = Placing {
        owner: output::owner(options.capture.as_root)?,
        mode: options.mode,
        overwrite: options.overwrite,
        row_memory: row_memory(options.row_memory),
    };
    let recorded = capture(options, placing, guardian)?;
    tell(&recorded.outcome)?;
    if recorded.outcome.idle && !recorded.attached {
        say!(
            "note       no process of the command used an AMD GPU; `-a` also records what a daemon or a container runtime runs"
        );
    }
    Ok(ExitCode::from(code(&recorded)))
}

/// Runs the command and records it.
pub fn capture(options: &Record, placing: Placing, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting tokio")?;
    runtime.block_on(record(options, placing, guardian))
}

async fn record(options: &Record, placing: Placing, guardian: Option<Guardian>) -> anyhow::Result<Recorded> {
    // The signal handlers come first: the command inherits none of them, and no signal arrives before the recorder is prepared.
    let mut signals = Signals::new()?;
    let ready = Ready::prepare(&options.capture, &options.command, Terminal::Shared, guardian)?;
    let subject = &ready.subject;
    let wanted = options.output.clone().or_else(|| subject.place());
    let dir = output::directory(wanted.as_deref(), &subject.name(), subject.pid());
    let writer = TraceWriter::create_as(&dir, manifest::begin(subject.target()), placing)?;
    ready.tell();
    let Ready {
        session,
        there,
        subject,
    } = ready;
    let attached = !matches!(subject, Subject::Command { .. });
    let collector = Collector::start(session, Recorder::new(writer, OnFailure::GoOn), &there)?;
    let since = Since::now();
    let watched = match subject.go() {
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
    let ending = watch(watched, options.duration, &collector, &mut signals).await?;
    let (recorder, mut inventory) = collector.finish()?;
    if let Some(known) = recorder
        .idle_processes()
        .filter(|_| !attached && !options.capture.no_follow)
    {
        inventory.warnings.extend(since.users(known).iter().map(elsewhere));
    }
    let outcome = recorder.finish(&inventory, &ending)?;
    for warning in &outcome.manifest.warnings {
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
    let terminal = std::io::stderr().is_terminal();
    let mut ticks = tokio::time::interval(PROGRESS);
    let ending = loop {
        tokio::select! {
            end = &mut ended => break end?.into(),
            () = &mut enough => break before_its_end(EndedBy::Duration),
            wish = signals.next(command.as_deref()) => if wish == Wish::Force {
                let name = signals.last().unwrap_or_default().to_owned();
                break before_its_end(EndedBy::Signal { name });
            },
            _ = ticks.tick(), if terminal => say::words(&format!("\r\x1b[K{}", collector.progress())),
        }
    };
    if terminal {
        say::words("\r\x1b[K");
    }
    Ok(ending)
}

fn before_its_end(by: EndedBy) -> Ending {
    Ending { status: None, by }
}

/// Prints the path summary.
fn tell(outcome: &Outcome) -> anyhow::Result<()> {
    let mut text = Vec::new();
    crate::report::text::summary(&mut text, &outcome.manifest, &outcome.report)?;
    say::words(&String::from_utf8_lossy(&text));
    let size = tracer_core::units::bytes(outcome.written.bytes);
    say!(
        "trace      {} ({size}); read it with `tracer report {0}`",
        foreign::line(outcome.written.dir.display())
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
