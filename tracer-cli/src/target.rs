//! The subject of a recording: a command, running processes, or every process. Prepares it, starts it, and waits for its exit.

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, OwnedFd},
    process::ExitStatus,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use tokio::io::{Interest, unix::AsyncFd};
use tracer_capture::{
    backend,
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
use tracer_core::{foreign, words::count};
use tracer_store::manifest::{EndedBy, Target};

use crate::{
    cli::{Backend, Capture, Detail},
    report::{layout::Layout, text::LABEL},
    say::{self, say},
};

/// Interval at which tracer asks whether the subject has exited, if it cannot wait for that.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which tracer asks for the status of a command that has exited: another thread gets it.
const SOON: Duration = Duration::from_millis(1);

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
    /// Starts the subject.
    pub start: Start,
    /// Why the recording does without eBPF, although the user did not say so.
    because: Option<String>,
}

/// What a session traces.
pub struct Subject {
    /// The target for the manifest of a trace.
    pub target: Target,
    /// A name to show to users.
    pub title: String,
    /// The default name of a trace of this subject.
    pub name: OsString,
    /// The id of the first process; for the whole machine, tracer's own process id.
    pub pid: u32,
}

/// What is left to do until a subject runs.
pub enum Start {
    /// The command waits in a process of its own.
    Command(Waiting),
    /// The subject runs already.
    Running(Watched),
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
        let candidates = pids.into_iter().map(Candidate::of).collect::<Result<Vec<_>, _>>()?;
        let (options, because) = options(capture)?;
        let mut session = Session::start(options, guardian, readers()?)?;
        let (there, subject, start) = if options.system {
            let there = session.trace_all()?;
            (there, Subject::system(), Start::Running(Watched::System))
        } else if !candidates.is_empty() {
            let there = session.attach(&candidates, options.follow)?;
            let subject = Subject::processes(&candidates);
            (there, subject, Start::Running(Watched::Processes(candidates)))
        } else {
            let waiting = Waiting::spawn(command, user(capture.as_root)?.as_ref(), terminal)?;
            session.trace(waiting.pid())?;
            let subject = Subject::command(command, waiting.pid());
            (Vec::new(), subject, Start::Command(waiting))
        };
        Ok(Self {
            session,
            there,
            subject,
            start,
            because,
        })
    }

    /// Prints how tracer captures, if that is not the usual way, and which processes it attached to.
    pub fn announce(&self) {
        if let Some(because) = &self.because {
            let backend = self.session.inventory().backend;
            say!("backend    {backend}, because {because}; docs/backends.md says what that captures");
        }
        if self.subject.target == Target::System {
            say!("watching   every process that submits to AMD GPUs");
        }
        for process in &self.there {
            let name = match process.comm.as_slice() {
                // Its name could not be read: it exited in between.
                [] => "name unknown".to_owned(),
                comm => foreign::line(foreign::from_bytes(comm)),
            };
            let compute = process.queues.iter().filter(|queue| queue.compute != Some(false));
            let later = match (process.has_runtime, compute.count()) {
                (true, 0) => String::new(),
                (true, queues) => {
                    let queues = count(queues as u64, "queue");
                    format!(": it has {queues} that may take kernels; tracer finds each at its next doorbell")
                }
                (false, 0) => {
                    ": it has no HSA runtime yet; if it loads one, tracer captures it from its first packet on"
                        .to_owned()
                }
                (false, queues) => {
                    let queues = count(queues as u64, "queue");
                    format!(": it has no HSA runtime, holds /dev/kfd and {queues} that no probe sees")
                }
            };
            let line = format!("attached   process {} ({name}){later}", process.pid);
            say::words(&Layout::of(&io::stderr()).wrap(&line, LABEL));
        }
    }
}

/// Returns the options of the session, and why it does without eBPF if the user did not say so.
fn options(capture: &Capture) -> anyhow::Result<(session::Options, Option<String>)> {
    let own = rustix::process::geteuid().as_raw();
    let api = capture.calls();
    let mut options = session::Options {
        backend: match capture.backend {
            Backend::Auto | Backend::Ebpf => session::Backend::Ebpf,
            Backend::Perf => session::Backend::Perf,
            Backend::Ftrace => session::Backend::Ftrace,
        },
        // Links between calls and packets need this: for every packet of a batch except the last, a link is based on the fact that
        // the call's thread reserved the packet.
        reserves: capture.detail == Detail::Full || api.records(),
        api,
        stacks: if capture.stacks { capture.stack_limit } else { 0 },
        user: User::invoking()?.map_or(own, |user| user.uid),
        follow: !capture.no_follow,
        system: capture.all,
        debuginfod: capture.debuginfod,
        pause_limit: Duration::from_millis(capture.pause_limit.into()),
        diagnostics: log::log_enabled!(log::Level::Debug),
        buffer_bytes: (capture.buffer << 20).next_power_of_two(),
    };
    let mut because = None;
    if capture.backend == Backend::Auto {
        let choice = backend::choose(&options);
        (options.backend, because) = (choice.backend, choice.because);
    }
    Ok((options, because))
}

/// Returns the user that the command runs as; `None` means the user of this process.
pub fn user(as_root: bool) -> anyhow::Result<Option<User>> {
    Ok(if as_root { None } else { User::to_act_as()? })
}

impl Subject {
    fn command(words: &[OsString], pid: u32) -> Self {
        let argv: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self {
            title: argv.join(" "),
            target: Target::Command { argv },
            name: words.first().cloned().unwrap_or_default(),
            pid,
        }
    }

    fn processes(candidates: &[Candidate]) -> Self {
        let comm = |candidate: &Candidate| foreign::from_bytes(&candidate.comm).into_owned();
        let titles = candidates.iter().map(|c| format!("{} ({})", c.pid, comm(c)));
        let name = |c: &Candidate| format!("{}-{}", comm(c).replace('/', "-"), c.pid);
        Self {
            title: titles.collect::<Vec<_>>().join(", "),
            target: Target::Attached {
                pids: candidates.iter().map(|candidate| candidate.pid).collect(),
            },
            name: candidates.first().map(name).unwrap_or_default().into(),
            pid: candidates.first().map_or(0, |candidate| candidate.pid),
        }
    }

    fn system() -> Self {
        Self {
            title: "every process".to_owned(),
            target: Target::System,
            name: "system".into(),
            pid: std::process::id(),
        }
    }
}

impl Start {
    /// Starts the command; running processes need nothing.
    pub fn go(self) -> anyhow::Result<Watched> {
        Ok(match self {
            Self::Command(waiting) => Watched::Command(waiting.go()?),
            Self::Running(watched) => watched,
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

/// How a recording ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The command's status, if it has exited; `None` for processes that tracer did not create.
    pub status: Option<ExitStatus>,
    /// What ended the recording.
    pub by: EndedBy,
}

impl Ending {
    /// Returns the ending of a recording that did not wait for its subject.
    pub fn early(by: EndedBy) -> Self {
        Self { status: None, by }
    }
}

impl Watched {
    /// Returns the command's process, if there is a command.
    pub fn command(&self) -> Option<Arc<Process>> {
        match self {
            Self::Command(running) => Some(Arc::clone(&running.process)),
            Self::Processes(_) | Self::System => None,
        }
    }

    /// Returns an [`Ending`] if the whole subject has exited. It must not be called again after that.
    pub fn ended(&mut self) -> anyhow::Result<Option<Ending>> {
        Ok(match self {
            Self::Command(running) => running.wait(Duration::ZERO)?.map(|status| Ending {
                status: Some(status),
                by: EndedBy::CommandExited,
            }),
            Self::Processes(candidates) => {
                candidates.retain(|candidate| !sys::has_ended(&candidate.pidfd));
                candidates.is_empty().then(|| Ending::early(EndedBy::TargetExited))
            }
            Self::System => None,
        })
    }

    /// Waits until the whole subject has exited.
    pub async fn end(&mut self) -> anyhow::Result<Ending> {
        let mut have_exited = true;
        match self {
            Self::Command(running) => have_exited = exited(&running.process.descriptor).await,
            Self::Processes(candidates) => {
                for candidate in candidates {
                    have_exited &= exited(&candidate.pidfd).await;
                }
            }
            Self::System => std::future::pending().await,
        }
        loop {
            if let Some(ending) = self.ended()? {
                return Ok(ending);
            }
            tokio::time::sleep(if have_exited { SOON } else { LOOK }).await;
        }
    }
}

/// Waits until a process has exited. Returns `false` if that cannot be waited for.
async fn exited(pidfd: &OwnedFd) -> bool {
    // SAFETY: the descriptor is borrowed, so that it stays open, and is the same for as long as the registration.
    let registered = unsafe { AsyncFd::register_with_interest(pidfd.as_fd(), Interest::READABLE) };
    match registered {
        Ok(process) => process.readable().await.is_ok(),
        Err(_) => false,
    }
}
