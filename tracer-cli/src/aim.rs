//! What is to be watched, a command, processes that run, or all of them: made ready, let go, and awaited.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::ExitStatus,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{
    attach::Attached,
    candidate::Candidate,
    confined::Readers,
    guardian::Guardian,
    launch::{Process, Running, Terminal, User, Waiting},
    session::{self, Session},
    sys,
};
use tracer_core::foreign;
use tracer_store::manifest::Target;

use crate::{
    cli::{Capture, Detail},
    say::say,
};

/// How often somebody looks whether all is over.
const LOOK: Duration = Duration::from_millis(5);

/// What reads files and memory of others for this process. Set once, while the process has one thread.
static READERS: OnceLock<Readers> = OnceLock::new();

/// Forks the process that lets go on whatever a dead tracer left stopped, and the one that reads and parses what others could
/// use against the tracer.
pub fn guardian() -> anyhow::Result<Option<Guardian>> {
    // SAFETY: called first thing in `main`, before any thread is started.
    let guardian = unsafe { Guardian::start() }?;
    // SAFETY: as above. After the guardian, which would inherit the connection to it.
    let readers = unsafe { Readers::start() }?;
    // It is called once.
    let _ = READERS.set(readers);
    Ok(Some(guardian))
}

/// The readers that [`guardian`] started.
pub fn readers() -> anyhow::Result<Readers> {
    READERS.get().cloned().context("no readers were started")
}

/// A session that traces its subject from the subject's first instruction, or from the moment of the attach.
pub struct Ready {
    /// The session.
    pub session: Session,
    /// Processes that were there before.
    pub there: Vec<Attached>,
    /// What it traces.
    pub subject: Subject,
}

/// What is traced.
pub enum Subject {
    /// A command that waits to begin.
    Command {
        /// The process that will become it.
        waiting: Waiting,
        /// It, with its arguments.
        words: Vec<OsString>,
    },
    /// Processes that run.
    Processes(Vec<Candidate>),
    /// Every process of the machine.
    System,
}

impl Ready {
    /// Sets everything up. `terminal`: whether the command may use it.
    pub fn prepare(
        capture: &Capture,
        command: &[OsString],
        terminal: Terminal,
        guardian: Option<Guardian>,
    ) -> anyhow::Result<Self> {
        // What can't be attached to is told before anything is set up.
        let mut pids = capture.pid.clone();
        pids.sort_unstable();
        pids.dedup();
        let candidates = pids.into_iter().map(Candidate::look).collect::<Result<Vec<_>, _>>()?;
        let options = options(capture)?;
        let mut session = Session::start(options, guardian, readers()?)?;
        if options.system {
            let there = session.trace_all()?;
            return Ok(Self {
                session,
                there,
                subject: Subject::System,
            });
        }
        if !candidates.is_empty() {
            let there = session.attach(&candidates, options.follow)?;
            return Ok(Self {
                session,
                there,
                subject: Subject::Processes(candidates),
            });
        }
        let waiting = Waiting::spawn(command, capture.user()?.as_ref(), terminal)?;
        session.trace(waiting.pid())?;
        Ok(Self {
            session,
            there: Vec::new(),
            subject: Subject::Command {
                waiting,
                words: command.to_vec(),
            },
        })
    }

    /// Says what was attached to.
    pub fn tell(&self) {
        if matches!(self.subject, Subject::System) {
            say!("watching   every process that submits to AMD GPUs");
        }
        for process in &self.there {
            let name = match process.comm.as_slice() {
                // Its name could not be read: it exited in between.
                [] => "name unknown".to_owned(),
                comm => foreign::line(foreign::from_bytes(comm)).to_string(),
            };
            let later = if process.has_runtime {
                ""
            } else {
                ": it has no HSA runtime yet; if it loads one, tracer captures it from its first packet on"
            };
            say!("attached   process {} ({name}){later}", process.pid);
        }
    }
}

fn options(capture: &Capture) -> anyhow::Result<session::Options> {
    let own = rustix::process::geteuid().as_raw();
    Ok(session::Options {
        // What a call's link rests on for all but the last packet of a batch: that the call's thread reserved it.
        reserves: capture.detail == Detail::Full || capture.api.links(),
        api: capture.api.into(),
        user: User::invoking()?.map_or(own, |user| user.uid),
        follow: !capture.no_follow,
        system: capture.all,
        debuginfod: capture.debuginfod,
        pause_limit: Duration::from_millis(capture.pause_limit.into()),
        diagnostics: log::log_enabled!(log::Level::Debug),
        buffer_bytes: (capture.buffer << 20).next_power_of_two(),
    })
}

impl Capture {
    /// Whom the command runs as; `None`: as this process.
    pub fn user(&self) -> anyhow::Result<Option<User>> {
        Ok(if self.as_root { None } else { User::to_act_as()? })
    }
}

impl Subject {
    /// For a trace's manifest.
    pub fn target(&self) -> Target {
        match self {
            Self::Command { words, .. } => Target::Command {
                argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            },
            Self::Processes(candidates) => Target::Attached {
                pids: candidates.iter().map(|candidate| candidate.pid).collect(),
            },
            Self::System => Target::System,
        }
    }

    /// What a trace of it is called by default.
    pub fn name(&self) -> OsString {
        match self {
            Self::Command { words, .. } => words.first().cloned().unwrap_or_default(),
            Self::Processes(candidates) => candidates.first().map_or_else(OsString::new, |candidate| {
                let comm = foreign::from_bytes(&candidate.comm).replace('/', "-");
                format!("{comm}-{}", candidate.pid).into()
            }),
            Self::System => "system".into(),
        }
    }

    /// Where a trace of it goes by default, if not where its name says: there are many recordings of the one machine.
    pub fn place(&self) -> Option<PathBuf> {
        matches!(self, Self::System).then(|| "system-%time%.trace".into())
    }

    /// The first process; of the whole machine, tracer's own.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Command { waiting, .. } => waiting.pid(),
            Self::Processes(candidates) => candidates.first().map_or(0, |candidate| candidate.pid),
            Self::System => std::process::id(),
        }
    }

    /// What people call it.
    pub fn title(&self) -> String {
        match self {
            Self::Command { words, .. } => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
            Self::Processes(candidates) => {
                let named = |c: &Candidate| format!("{} ({})", c.pid, foreign::from_bytes(&c.comm));
                candidates.iter().map(named).collect::<Vec<_>>().join(", ")
            }
            Self::System => "every process".to_owned(),
        }
    }

    /// Lets the command begin; processes that run need nothing.
    pub fn go(self) -> anyhow::Result<Watched> {
        Ok(match self {
            Self::Command { waiting, .. } => Watched::Command(waiting.go()?),
            Self::Processes(candidates) => Watched::Processes(candidates),
            Self::System => Watched::System,
        })
    }
}

/// What is traced, going on.
pub enum Watched {
    /// A command.
    Command(Running),
    /// Processes that were there before.
    Processes(Vec<Candidate>),
    /// Every process of the machine, which does not end.
    System,
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The command's status; `None` for processes that others made.
    pub status: Option<ExitStatus>,
}

impl Watched {
    /// The command's process, if there is a command.
    pub fn command(&self) -> Option<Arc<Process>> {
        match self {
            Self::Command(running) => Some(Arc::clone(&running.process)),
            Self::Processes(_) | Self::System => None,
        }
    }

    /// Whether all of it has ended; once it said so it must not be asked again.
    pub fn ended(&mut self) -> anyhow::Result<Option<End>> {
        Ok(match self {
            Self::Command(running) => running.wait(Duration::ZERO)?.map(|status| End { status: Some(status) }),
            Self::Processes(candidates) => {
                candidates.retain(|candidate| !sys::has_ended(&candidate.pidfd));
                candidates.is_empty().then_some(End { status: None })
            }
            Self::System => None,
        })
    }

    /// Waits for that.
    pub async fn end(&mut self) -> anyhow::Result<End> {
        loop {
            if let Some(end) = self.ended()? {
                return Ok(end);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
