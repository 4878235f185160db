//! The lines of the findings: an item, and further lines below it.

use std::fmt::{Display, Write};

use tracer_core::foreign;

/// The findings as text.
#[derive(Default)]
pub struct Lines(pub String);

impl Lines {
    /// Adds a line: its subject, and the text. The text may quote names of files and processes.
    pub fn item(&mut self, about: &str, text: impl Display) {
        let _ = writeln!(self.0, "{about:<11}{}", foreign::line(text));
    }

    /// Adds a further line below an item.
    pub fn more(&mut self, text: impl Display) {
        self.item("", text);
    }
}
