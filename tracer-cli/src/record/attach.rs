//! Recording processes that run: from the moment at which they are attached to, until they end or the user has enough.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
    os::fd::OwnedFd,
};

use anyhow::Context;
use tokio::io::{Interest, unix::AsyncFd};
use tracer_capture::{
    attach::Attached,
    candidate::Candidate,
    guardian::Guardian,
    launch::User,
    session::{self, Session},
};
use tracer_store::{TraceWriter, manifest::Target};

use super::{
    PROGRESS, Recorded, manifest, output,
    recorder::{Ending, Recorder},
    signals::Signals,
};
use crate::cli::Record;

/// Attaches, and records until the processes end.
pub async fn record(
    options: &Record,
    session_options: session::Options,
    guardian: Option<Guardian>,
    mut signals: Signals,
) -> anyhow::Result<Recorded> {
    // What can't be attached to is told before anything is set up.
    let pids: BTreeSet<u32> = options.pid.iter().copied().collect();
    let candidates = pids
        .iter()
        .map(|&pid| Candidate::look(pid))
        .collect::<Result<Vec<_>, _>>()?;
    let follow = session_options.follow;
    let mut session = Session::start(session_options, guardian)?;
    let name = candidates.first().map(name).unwrap_or_default();
    let dir = output::directory(options.output.as_deref(), &name, pids.first().copied().unwrap_or(0));
    let target = Target::Attached {
        pids: pids.into_iter().collect(),
    };
    let writer = TraceWriter::create(&dir, manifest::begin(target), options.overwrite)?;
    let attached = match session.attach(&candidates, follow) {
        Ok(attached) => attached,
        Err(error) => {
            // A trace of nothing would be in the way of the next attempt.
            drop(writer);
            output::remove(&dir);
            return Err(error.into());
        }
    };
    tell(&attached);
    let recorder = Recorder::start(session, writer, &attached)?;
    watch(candidates, options, &recorder, &mut signals).await?;
    let outcome = recorder.finish(Ending::default())?;
    if let Some(user) = User::invoking() {
        output::give_to(&dir, &user);
    }
    for warning in &outcome.manifest.warnings {
        log::warn!("{warning}");
    }
    Ok(Recorded {
        status: None,
        attached: true,
        outcome,
    })
}

/// What the trace is called by default.
fn name(candidate: &Candidate) -> std::ffi::OsString {
    let comm = String::from_utf8_lossy(&candidate.comm).replace('/', "-");
    format!("{comm}-{}", candidate.pid).into()
}

fn tell(attached: &[Attached]) {
    for process in attached {
        let comm = String::from_utf8_lossy(&process.comm);
        let later = if process.has_runtime {
            ""
        } else {
            ": it has no HSA runtime; one that it loads will be traced from its first packet"
        };
        eprintln!("attached   process {} ({comm}){later}", process.pid);
    }
}

/// Waits until the processes have ended, the time is up, or the user says so.
async fn watch(
    candidates: Vec<Candidate>,
    options: &Record,
    recorder: &Recorder,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let ended = async {
        for candidate in candidates {
            end(candidate.pidfd).await?;
        }
        anyhow::Ok(())
    };
    let enough = async {
        match options.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(ended, enough);
    let terminal = std::io::stderr().is_terminal();
    let mut ticks = tokio::time::interval(PROGRESS);
    let done = loop {
        tokio::select! {
            done = &mut ended => break done,
            () = &mut enough => break Ok(()),
            () = signals.any() => break Ok(()),
            _ = ticks.tick(), if terminal => eprint!("\r\x1b[K{}", recorder.progress()),
        }
    };
    if terminal {
        eprint!("\r\x1b[K");
    }
    done
}

/// Waits for the end of the process behind a pidfd: it is readable from then on.
async fn end(pidfd: OwnedFd) -> anyhow::Result<()> {
    // SAFETY: the descriptor is the value's own, and open as long as it lives.
    let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    let pidfd = pidfd.map_err(io::Error::from).context("watching a process")?;
    let _ = pidfd.readable().await.context("waiting for a process")?;
    Ok(())
}
