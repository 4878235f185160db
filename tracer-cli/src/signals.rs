//! Signals to tracer. Where it runs a command the first one is for that, whose end ends everything; a second one forces it.

use std::io::IsTerminal;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    count: u32,
}

impl Signals {
    /// Takes over SIGINT and SIGTERM.
    pub fn new() -> anyhow::Result<Self> {
        let handler = |kind| signal(kind).context("setting up signal handlers");
        Ok(Self {
            interrupt: handler(SignalKind::interrupt())?,
            terminate: handler(SignalKind::terminate())?,
            count: 0,
        })
    }

    /// The next one, passed on to the command unless the terminal did so itself. Without a command it is for tracer.
    pub async fn next(&mut self, command: Option<u32>) -> Wish {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.terminate.recv() => libc::SIGTERM,
        };
        self.count += 1;
        let Some(command) = command.filter(|_| self.count == 1) else {
            return Wish::Force;
        };
        if !(signal == libc::SIGINT && shares_terminal(command)) {
            // It may have ended already.
            let _ = tracer_capture::sys::signal(command, signal);
        }
        Wish::End
    }
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
