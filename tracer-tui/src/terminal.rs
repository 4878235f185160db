//! A real terminal: as it was when this ends, however this ends.

use std::{
    io::{self, Stdout},
    panic,
    sync::Once,
};

use crossterm::{
    cursor::Show,
    event::{DisableMouseCapture, EnableMouseCapture},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Terminal, backend::CrosstermBackend};

use crate::{Top, draw};

/// A terminal that shows the screen. Its end (and a panic) gives the terminal back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// What the terminal refuses; it is given back then.
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // First the terminal: the words of a panic are lost on the other screen.
                restore();
                before(info);
            }));
        });
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Shows the state.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show(&mut self, top: &Top) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, top)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. May be called at any time, and again.
pub fn restore() {
    // A terminal that is gone needs nothing.
    let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
