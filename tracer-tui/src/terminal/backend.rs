//! crossterm's terminal, with a bound on its size and without a panic when it is gone.

use std::io::{self, Stdout};

use ratatui::{
    backend::{Backend, ClearType, CrosstermBackend, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};
use rustix::termios::tcgetwinsize;

/// The largest part of a screen that is drawn, in cells. A terminal may report 65535 x 65535, whose cells no memory can store.
pub const MAX_SIZE: Size = Size {
    width: 1024,
    height: 512,
};

/// Returns the part of a screen that is drawn.
pub fn bounded(size: Size) -> Size {
    Size::new(size.width.min(MAX_SIZE.width), size.height.min(MAX_SIZE.height))
}

/// The terminal of standard output.
pub struct Bounded(CrosstermBackend<Stdout>);

impl Bounded {
    /// Creates the backend for standard output.
    pub fn new() -> Self {
        Self(CrosstermBackend::new(io::stdout()))
    }
}

impl Backend for Bounded {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        self.0.draw(content)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.0.hide_cursor()
    }

    /// Never fails: when a [`ratatui::Terminal`] is dropped, it reports a failure by `eprintln!`, which panics if standard error is
    /// the terminal that is gone.
    fn show_cursor(&mut self) -> io::Result<()> {
        let _ = self.0.show_cursor();
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.0.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.0.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear()
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.0.clear_region(clear_type)
    }

    /// Returns the size that the kernel reports, within the bound. `crossterm::terminal::size` would start `tput` if the kernel
    /// refuses.
    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stdout())?;
        Ok(bounded(Size::new(size.ws_col, size.ws_row)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.0)
    }
}
