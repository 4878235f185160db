//! Signals to tracer. Where it runs a command the first one is for that, whose end ends everything; a second one forces it.

use std::io::IsTerminal;

use anyhow::Context;
use rustix::process::Signal as Kind;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracer_capture::launch::Process;

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That the command ends.
    End,
    /// That tracer ends now, whatever the command does.
    Force,
}

/// Signals, and how many came.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if whoever started tracer (nohup) wants that it ignores this one.
    hangup: Option<Signal>,
    count: u32,
    last: Option<&'static str>,
}

impl Signals {
    /// Name of the last signal that came.
    pub fn last(&self) -> Option<&'static str> {
        self.last
    }

    /// Takes over SIGINT, SIGTERM and SIGHUP.
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

    /// The next one, passed on to the command unless the terminal did so itself. Without a command it is for tracer.
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
            // It may have ended already.
            let _ = command.signal(signal);
        }
        Wish::End
    }
}

/// Whether SIGHUP was ignored when tracer began.
fn ignores_hangup() -> bool {
    // SAFETY: plain data, of which zeros are a value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: null changes nothing; `now` takes the answer.
    let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Whether Ctrl-C reaches the command too: the terminal sends it to the whole foreground process group.
fn shares_terminal(command: u32) -> bool {
    let stdin = std::io::stdin();
    let own = rustix::process::getpgrp();
    let its = i32::try_from(command)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .and_then(|command| rustix::process::getpgid(Some(command)).ok());
    stdin.is_terminal() && its == Some(own) && rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == own)
}
