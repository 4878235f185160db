//! The state of this process's terminal, restored whatever happens to QEMU.

use std::io;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A guard that restores modes and flags of standard input when dropped, because QEMU makes it raw and non-blocking.
pub struct RestoreTerminal {
    modes: Termios,
    flags: OFlags,
}

impl RestoreTerminal {
    /// Saves the present state. Fails if standard input is not a terminal.
    pub fn new() -> io::Result<Self> {
        let input = io::stdin();
        Ok(Self {
            modes: tcgetattr(&input)?,
            flags: fcntl_getfl(&input)?,
        })
    }
}

impl Drop for RestoreTerminal {
    fn drop(&mut self) {
        let input = io::stdin();
        // The terminal may be gone. The failure cannot be reported then.
        let _ = tcsetattr(&input, OptionalActions::Now, &self.modes);
        let _ = fcntl_setfl(&input, self.flags);
    }
}
