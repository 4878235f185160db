//! The loop between keys, pictures and the terminal.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::RecvTimeoutError,
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use crossterm::event::Event;
use tracer_core::live::Picture;
use tracer_tui::{
    Action, Status, Top,
    terminal::{Input, Screen},
};

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(100);
/// Time between two pictures that are kept for looking back, ns.
const KEPT_NS: u64 = 1_000_000_000;

/// A source of pictures.
pub trait Source {
    /// Returns the newest picture, if there is one since the last call.
    fn picture(&mut self) -> Option<Picture>;
    /// Fills in the status that is shown beside the picture.
    fn status(&mut self, status: &mut Status);
    /// Does what the screen alone can't do. Returns a message about it.
    fn act(&mut self, action: Action) -> anyhow::Result<Option<String>>;
}

/// Returns an error if standard output is not a terminal.
pub fn require() -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        bail!("standard output is not a terminal; use `tracer top --once --json`");
    }
    Ok(())
}

/// Shows pictures until the user quits, `stop` is set or the terminal hangs up.
pub fn show(source: &mut dyn Source, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut top = Top::new(Status::default());
    top.colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut screen = Screen::open().context("opening the terminal")?;
    let input = Input::start().context("reading keys")?;
    let mut kept = 0;
    while !stop.load(Ordering::Acquire) {
        let frame = Instant::now();
        if let Some(picture) = source.picture() {
            // One picture per second is kept; those in between replace the newest one.
            if picture.time_ns.saturating_sub(kept) >= KEPT_NS {
                kept = picture.time_ns;
                top.push(picture);
            } else {
                top.renew(picture);
            }
        }
        source.status(&mut top.status);
        if !drawn(screen.show(&top), &input, stop)? {
            return Ok(());
        }
        loop {
            let left = FRAME.saturating_sub(frame.elapsed());
            let action = match input.next(left) {
                Ok(Event::Key(key)) => top.key(key),
                Ok(Event::Mouse(mouse)) => {
                    top.mouse(mouse);
                    None
                }
                Ok(_) => None,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            match action {
                Some(Action::Quit) => return Ok(()),
                Some(action) => {
                    top.status.message = source.act(action).unwrap_or_else(|error| Some(format!("{error:#}")));
                }
                None => {}
            }
            if !drawn(screen.show(&top), &input, stop)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns whether drawing may continue. A terminal that hung up ends the viewer without an error.
fn drawn(done: io::Result<()>, input: &Input, stop: &AtomicBool) -> anyhow::Result<bool> {
    let Err(error) = done else { return Ok(true) };
    let gone = stop.load(Ordering::Acquire) || input.next(FRAME) == Err(RecvTimeoutError::Disconnected);
    if gone { Ok(false) } else { Err(error).context("drawing") }
}
