//! Signals to the recorder. The first one is for the command, whose end ends the recording; a second one forces it.

use std::io::IsTerminal;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That the command ends.
    End,
    /// That the recording ends now, whatever the command does.
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

    /// Waits for the next one, which is for nobody but the recorder.
    pub async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// The next one, passed on to the command unless the terminal did so itself.
    pub async fn next(&mut self, command: u32) -> Wish {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.terminate.recv() => libc::SIGTERM,
        };
        self.count += 1;
        if self.count > 1 {
            return Wish::Force;
        }
        if !(signal == libc::SIGINT && shares_terminal()) {
            // It may have ended already.
            let _ = tracer_capture::sys::signal(command, signal);
        }
        Wish::End
    }
}

/// Whether Ctrl-C reaches the command too: the terminal sends it to the whole foreground process group.
fn shares_terminal() -> bool {
    let stdin = std::io::stdin();
    stdin.is_terminal() && rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp())
}
