//! The lines of the findings: an item, and further lines below it.

use std::io::{self, Write};

use tracer_core::foreign;

/// Writes a line: its subject, and the text. The text may quote names of files and processes.
pub fn item(out: &mut impl Write, about: &str, text: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{about:<11}{}", foreign::line(text))
}

/// Writes a further line below an item.
pub fn more(out: &mut impl Write, text: impl std::fmt::Display) -> io::Result<()> {
    item(out, "", text)
}
