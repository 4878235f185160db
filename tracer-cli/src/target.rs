//! The subject of a recording: a command, running processes, or every process. Prepares it, starts it, and waits for its exit.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::ExitStatus,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use tracer_capture::{
    confined::Readers,
    pause::guardian::Guardian,
    session::{self, Session},
    sys,
    target::{
        attach::Attached,
        candidate::Candidate,
        launch::{Process, Running, Terminal, User, Waiting},
    },
};
use tracer_core::foreign;
use tracer_store::manifest::Target;

use crate::{
    cli::{Capture, Detail},
    say::say,
};

/// Interval at which tracer checks whether the subject has exited.
const LOOK: Duration = Duration::from_millis(5);

/// The reader process, which reads files and memory of other processes for this one. Set once, while the process has one thread.
static READERS: OnceLock<Readers> = OnceLock::new();

/// Forks the guardian, which resumes the processes that a dead tracer left stopped, and the reader process, which reads and parses
/// what other processes could use against tracer.
pub fn guardian() -> anyhow::Result<Option<Guardian>> {
    // SAFETY: called first in `main`, before any thread is started.
    let guardian = unsafe { Guardian::start() }?;
    // SAFETY: as above. Comes after the guardian, which would otherwise inherit the connection to the reader process.
    let readers = unsafe { Readers::start() }?;
    // This function is called once.
    let _ = READERS.set(readers);
    Ok(Some(guardian))
}

/// Returns the readers that [`guardian`] started.
pub fn readers() -> anyhow::Result<Readers> {
    READERS.get().cloned().context("no readers were started")
}

/// A session that traces its subject from the subject's first instruction, or from the moment of the attach.
pub struct Ready {
    /// The session.
    pub session: Session,
    /// Processes that existed before the session.
    pub there: Vec<Attached>,
    /// What the session traces.
    pub subject: Subject,
}

/// What a session traces.
pub enum Subject {
    /// A command that waits to start.
    Command {
        /// The process that will run the command.
        waiting: Waiting,
        /// The command with its arguments.
        words: Vec<OsString>,
    },
    /// Running processes.
    Processes(Vec<Candidate>),
    /// Every process of the machine.
    System,
}

impl Ready {
    /// Sets everything up. `terminal` says whether the command may use the terminal.
    pub fn prepare(
        capture: &Capture,
        command: &[OsString],
        terminal: Terminal,
        guardian: Option<Guardian>,
    ) -> anyhow::Result<Self> {
        // Reports processes that tracer can't attach to before it sets anything up.
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

    /// Prints which processes tracer attached to.
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
        // Links between calls and packets need this: for every packet of a batch except the last, a link is based on the fact that
        // the call's thread reserved the packet.
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
    /// Returns the user that the command runs as; `None` means the user of this process.
    pub fn user(&self) -> anyhow::Result<Option<User>> {
        Ok(if self.as_root { None } else { User::to_act_as()? })
    }
}

impl Subject {
    /// Returns the target for the manifest of a trace.
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

    /// Returns the default name of a trace of this subject.
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

    /// Returns the default path of a trace if it differs from the path that the name gives: one machine is recorded many times.
    pub fn place(&self) -> Option<PathBuf> {
        matches!(self, Self::System).then(|| "system-%time%.trace".into())
    }

    /// Returns the id of the first process; for the whole machine, tracer's own process id.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Command { waiting, .. } => waiting.pid(),
            Self::Processes(candidates) => candidates.first().map_or(0, |candidate| candidate.pid),
            Self::System => std::process::id(),
        }
    }

    /// Returns a name to show to users.
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

    /// Starts the command; running processes need nothing.
    pub fn go(self) -> anyhow::Result<Watched> {
        Ok(match self {
            Self::Command { waiting, .. } => Watched::Command(waiting.go()?),
            Self::Processes(candidates) => Watched::Processes(candidates),
            Self::System => Watched::System,
        })
    }
}

/// A subject that is running and traced.
pub enum Watched {
    /// A command.
    Command(Running),
    /// Processes that existed before the session.
    Processes(Vec<Candidate>),
    /// Every process of the machine. This subject does not end.
    System,
}

/// How a subject ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The exit status of the command; `None` for processes that tracer did not create.
    pub status: Option<ExitStatus>,
}

impl Watched {
    /// Returns the command's process, if there is a command.
    pub fn command(&self) -> Option<Arc<Process>> {
        match self {
            Self::Command(running) => Some(Arc::clone(&running.process)),
            Self::Processes(_) | Self::System => None,
        }
    }

    /// Returns an [`End`] if the whole subject has exited. It must not be called again after that.
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

    /// Waits until the whole subject has exited.
    pub async fn end(&mut self) -> anyhow::Result<End> {
        loop {
            if let Some(end) = self.ended()? {
                return Ok(end);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
