//! A real terminal. It is restored when the screen ends, however it ends.

mod backend;

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use crossterm::{
    cursor::Show,
    event::{self, DisableMouseCapture, EnableMouseCapture, Event},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::Terminal;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::retry_on_intr,
};

use crate::{Top, draw};
use backend::Bounded;
pub use backend::MAX_SIZE;

/// How long the thread that reads keys waits if the terminal has input that is not a complete event yet.
const PARTIAL: Duration = Duration::from_millis(50);

/// Whether a thread panicked while a screen was open: the screen must not draw over the panic message.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// A terminal that shows the screen. Dropping it (or a panic) restores the terminal.
pub struct Screen {
    terminal: Terminal<Bounded>,
}

impl Screen {
    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// Returns the terminal's error, after restoring the terminal.
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                PANICKED.store(true, Ordering::Release);
                // The terminal is restored first: a panic message on the alternate screen would be lost.
                restore();
                before(info);
            }));
        });
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)
            .and_then(|()| Terminal::new(Bounded::new()));
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
    /// Returns an error if the terminal is gone, or if a thread has panicked, which restored the terminal.
    pub fn show(&mut self, top: &Top) -> io::Result<()> {
        if PANICKED.load(Ordering::Acquire) {
            return Err(io::Error::other("a thread panicked"));
        }
        self.terminal.draw(|frame| draw(frame, top)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. May be called at any time, and repeatedly.
pub fn restore() {
    // A terminal that is gone needs nothing.
    let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// Keys and the mouse, read by a separate thread.
///
/// crossterm reads a terminal that hung up for ever, without a pause (`UnixInternalEventSource::try_read` of 0.29 takes the end of
/// the file, and an error, for "nothing yet"). So the thread asks the kernel first. If the terminal hangs up between that answer
/// and the read, only this thread hangs, and it ends with the process.
pub struct Input {
    events: mpsc::Receiver<Event>,
}

impl Input {
    /// Starts the thread, which reads the terminal that crossterm reads: standard input, otherwise /dev/tty.
    ///
    /// # Errors
    /// Returns an error if there is no terminal to read, or if no thread can be started.
    pub fn start() -> io::Result<Self> {
        let stdin = io::stdin();
        let terminal = if stdin.is_terminal() {
            File::from(stdin.as_fd().try_clone_to_owned()?)
        } else {
            File::open("/dev/tty")?
        };
        let (sender, events) = mpsc::channel();
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(move || read(&terminal, &sender))?;
        Ok(Self { events })
    }

    /// Waits for the next event: a key, or an event of the mouse.
    ///
    /// # Errors
    /// Returns `Timeout` if there was no event in that time, and `Disconnected` if the terminal is gone.
    pub fn next(&self, timeout: Duration) -> Result<Event, mpsc::RecvTimeoutError> {
        self.events.recv_timeout(timeout)
    }
}

/// Reads until the terminal hangs up or the receiver is gone.
fn read(terminal: &File, sender: &mpsc::Sender<Event>) {
    while is_readable(terminal) {
        let mut found = false;
        while event::poll(Duration::ZERO).is_ok_and(|ready| ready) {
            found = true;
            let Ok(event) = event::read() else { return };
            if sender.send(event).is_err() {
                return;
            }
        }
        if !found {
            std::thread::sleep(PARTIAL);
        }
    }
}

/// Waits for input. Returns `false` if the terminal hung up.
fn is_readable(terminal: &File) -> bool {
    let mut polled = [PollFd::new(terminal, PollFlags::IN)];
    if retry_on_intr(|| poll(&mut polled, None)).is_err() {
        return false;
    }
    let state = polled[0].revents();
    state.contains(PollFlags::IN) && !state.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

#[cfg(test)]
mod tests {
    use ratatui::{backend::TestBackend, layout::Size};

    use super::{backend::bounded, *};
    use crate::Status;

    #[test]
    fn no_size_that_a_terminal_claims_takes_more_than_its_bound() {
        for (width, height) in [
            (0, 0),
            (1, 1),
            (0, 9),
            (9, 0),
            (20, 6),
            (65535, 1),
            (1, 65535),
            (65535, 65535),
        ] {
            let area = bounded(Size::new(width, height));
            assert!(area.width <= MAX_SIZE.width && area.height <= MAX_SIZE.height);
            let mut terminal = Terminal::new(TestBackend::new(area.width, area.height)).unwrap();
            terminal
                .draw(|frame| draw(frame, &Top::new(Status::default())))
                .unwrap();
        }
    }
}
