//! Signals to tracer. If tracer runs a command, the first signal is for the command, whose exit ends tracer too; a second signal
//! forces the end.

use std::io::IsTerminal;

use anyhow::Context;
use rustix::process::Signal as Kind;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracer_capture::target::launch::Process;

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The command shall end.
    End,
    /// tracer shall end now, whatever the command does.
    Force,
}

/// The signal handlers, and the number of signals received.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process that started tracer (nohup) made it ignore this signal.
    hangup: Option<Signal>,
    count: u32,
    last: Option<&'static str>,
}

impl Signals {
    /// Returns the name of the last signal received.
    pub fn last(&self) -> Option<&'static str> {
        self.last
    }

    /// Installs handlers for SIGINT, SIGTERM and SIGHUP.
    pub fn new() -> anyhow::Result<Self> {
        let handler = |kind| signal(kind).context("setting up signal handlers");
        Ok(Self {
            interrupt: handler(SignalKind::interrupt())?,
            terminate: handler(SignalKind::terminate())?,
            hangup: (!ignores_hangup()).then(|| handler(SignalKind::hangup())).transpose()?,
            count: 0,
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
        let (signal, name) = tokio::select! {
            _ = self.interrupt.recv() => (Kind::INT, "SIGINT"),
            _ = self.terminate.recv() => (Kind::TERM, "SIGTERM"),
            _ = hangup => (Kind::HUP, "SIGHUP"),
        };
        self.count += 1;
        self.last = Some(name);
        let Some(command) = command.filter(|_| self.count == 1) else {
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
