//! Signals to tracer. If tracer runs a command, the first signal is for the command, whose exit ends tracer too; a second signal
//! forces the end.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use rustix::process::Signal as Kind;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracer_capture::target::launch::Process;

/// Runs the work of a command, which may wait for signals.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("starting tokio")?.block_on(work)
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The command shall end.
    End,
    /// tracer shall end now, whatever the command does.
    Force,
}

/// The signal handlers, and the last signal received.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process that started tracer (nohup) made it ignore this signal.
    hangup: Option<Signal>,
    last: Option<Kind>,
}

impl Signals {
    /// Returns the name of the last signal received.
    pub fn last(&self) -> Option<&'static str> {
        self.last.map(|signal| match signal {
            Kind::INT => "SIGINT",
            Kind::TERM => "SIGTERM",
            _ => "SIGHUP",
        })
    }

    /// Returns a flag that signals set, for a loop that does not wait for them. The second SIGINT or SIGTERM ends tracer at once:
    /// a terminal that takes no more output keeps the loop from checking the flag.
    pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let mut signals = Self::new()?;
        drop(inside);
        let flag = Arc::clone(&stop);
        let wait = async move {
            loop {
                signals.next(None).await;
                // One hangup sends SIGHUP twice: to the leader of the session, and to the foreground group.
                let ends = signals.last.filter(|&signal| signal != Kind::HUP);
                if let (true, Some(signal)) = (stop.swap(true, Ordering::AcqRel), ends) {
                    // SAFETY: ends the process without running anything else of it.
                    unsafe { libc::_exit(128 + signal.as_raw()) };
                }
            }
        };
        // The kernel keeps the first 15 bytes of the name.
        let thread = thread::Builder::new().name("signals".into());
        let started = thread.spawn(move || runtime.block_on(wait));
        started.context("starting a thread")?;
        Ok(flag)
    }

    /// Installs handlers for SIGINT, SIGTERM and SIGHUP.
    pub fn new() -> anyhow::Result<Self> {
        let handler = |kind| signal(kind).context("setting up signal handlers");
        Ok(Self {
            interrupt: handler(SignalKind::interrupt())?,
            terminate: handler(SignalKind::terminate())?,
            hangup: (!ignores_hangup()).then(|| handler(SignalKind::hangup())).transpose()?,
            last: None,
        })
    }

    /// Waits for the next signal, and passes it on to the command unless the terminal did so itself. Without a command the signal
    /// is for tracer.
    pub async fn next(&mut self, command: Option<&Process>) -> Wish {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let signal = tokio::select! {
            _ = self.interrupt.recv() => Kind::INT,
            _ = self.terminate.recv() => Kind::TERM,
            _ = hangup => Kind::HUP,
        };
        let is_first = self.last.replace(signal).is_none();
        let Some(command) = command.filter(|_| is_first) else {
            return Wish::Force;
        };
        if !(signal == Kind::INT && shares_terminal(command.pid)) {
            // The command may have exited already.
            let _ = command.signal(signal);
        }
        Wish::End
    }
}

/// Returns whether SIGHUP was ignored when tracer started.
fn ignores_hangup() -> bool {
    // SAFETY: plain data, for which all zeros are a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the null pointer changes nothing; `now` receives the answer.
    let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Returns whether Ctrl-C also reaches the command: the terminal sends it to the whole foreground process group.
fn shares_terminal(command: u32) -> bool {
    let stdin = std::io::stdin();
    let own = rustix::process::getpgrp();
    let its = i32::try_from(command)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .and_then(|command| rustix::process::getpgid(Some(command)).ok());
    stdin.is_terminal() && its == Some(own) && rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == own)
}
