//! The lines of a file, each in bounded memory.

use std::io::{self, BufRead, Read};

use tracer_import::{MAX_LINE, TRACE_DAT};

/// Files that are no text, by their first bytes, and what makes text of them.
const UNFIT: [(&[u8], &str); 5] = [
    (
        TRACE_DAT,
        "it is trace.dat of trace-cmd, which is read from a file only: give its name instead of `-`",
    ),
    (
        b"PERFILE2",
        "it is perf.data; `perf script -i FILE > trace.txt` makes text of it",
    ),
    (
        b"\x1f\x8b",
        "it is compressed; `zcat FILE | tracer import -o DIR -` reads it",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "it is compressed; `zstdcat FILE | tracer import -o DIR -` reads it",
    ),
    (b"\x7fELF", "it is a program or a library"),
];

/// Reads lines one after the other.
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Returns the lines of an input.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
        }
    }

    /// Returns why the file is no text, if its first bytes show that.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn unfit(&mut self) -> io::Result<Option<&'static str>> {
        let start = self.input.fill_buf()?;
        let found = UNFIT.iter().find(|(magic, _)| start.starts_with(magic));
        Ok(found.map(|&(_, advice)| advice))
    }

    /// Returns the next line, without its newline; `None` after the last one. Of a line that is longer than [`MAX_LINE`], one byte
    /// more than that.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let most = MAX_LINE as u64 + 1;
        if self.input.by_ref().take(most).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() as u64 == most {
            self.input.skip_until(b'\n')?;
        }
        Ok(Some(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_no_line_is_lost() {
        let long = "x".repeat(3 * MAX_LINE);
        let text = format!("one\n\n{long}\n{}\nlast", &long[..MAX_LINE]);
        let mut lines = Lines::new(text.as_bytes());
        let mut lengths = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [3, 0, MAX_LINE + 1, MAX_LINE, 4]);
    }

    #[test]
    fn files_of_other_kinds_are_known() {
        let unfit = |start: &[u8]| Lines::new(start).unfit().unwrap().is_some();
        assert!(unfit(b"\x17\x08\x44tracing6\0") && unfit(b"PERFILE2...") && unfit(b"\x1f\x8b\x08"));
        assert!(!unfit(b"# tracer: nop\n") && !unfit(b""));
    }
}
