//! Folded stacks, as `flamegraph.pl`, speedscope and inferno read them: a line for each stack and kernel, `outermost;..;innermost;kernel
//! COUNT`, with the number of dispatches.
//!
//! Every dispatch counts once. What is not known is a frame in square brackets: a dispatch without a stack, callers that are missing, a function
//! without a name.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
};

use tracer_core::tables::{Dispatch, Fact, Table};

use crate::{ExportError, Exporter, Written};

/// The frame of dispatches without a stack.
pub const NO_STACK: &str = "[no stack]";
/// The first frame of a stack whose outer functions are missing.
pub const TRUNCATED: &str = "[truncated]";
/// The frame of a kernel without a name.
pub const NO_NAME: &str = "[unknown kernel]";

/// Counts dispatches by stack, and writes the counts at its end.
#[derive(Debug)]
pub struct Folded<W> {
    out: W,
    /// The last stack of each thread: its time, and its frames.
    last: HashMap<(u32, u32), (u64, String)>,
    counts: BTreeMap<String, u64>,
    written: Written,
}

impl<W: Write> Folded<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            last: HashMap::new(),
            counts: BTreeMap::new(),
            written: Written {
                without_stack: Some(0),
                ..Written::default()
            },
        }
    }

    fn dispatch(&mut self, row: &Dispatch) {
        let stack = self
            .last
            .get(&(row.pid, row.tid))
            .filter(|(time_ns, _)| *time_ns == row.time_ns);
        let frames = stack.map(|(_, frames)| frames.clone());
        self.count(frames, row.kernel.as_deref(), 1);
    }

    fn count(&mut self, frames: Option<String>, kernel: Option<&str>, dispatches: u64) {
        let frames = frames.unwrap_or_else(|| {
            *self.written.without_stack.get_or_insert_default() += dispatches;
            NO_STACK.to_owned()
        });
        let kernel = kernel.map_or_else(|| NO_NAME.to_owned(), name);
        *self.counts.entry(format!("{frames};{kernel}")).or_default() += dispatches;
    }
}

/// Returns the frames of a row of `stacks`, joined by semicolons.
#[must_use]
pub fn folded(frames: &str, complete: bool) -> String {
    let start = (!complete).then(|| TRUNCATED.to_owned());
    let frames = frames.lines().map(frame);
    start.into_iter().chain(frames).collect::<Vec<_>>().join(";")
}

/// Returns the name of a frame: its function, or its file and the address there.
#[must_use]
pub fn frame(line: &str) -> String {
    let mut fields = line.split('\t');
    let mut field = || fields.next().unwrap_or("-");
    match (field(), field(), field()) {
        ("-", "-", address) => format!("[{address}]"),
        ("-", file, address) => format!("[{}+{address}]", name(file)),
        (function, ..) => name(function),
    }
}

/// Returns a name without what has a meaning in the format.
fn name(text: &str) -> String {
    let text = tracer_core::foreign::line(text);
    text.replace(';', ":")
}

impl<W: Write> Exporter for Folded<W> {
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError> {
        match fact {
            Fact::Stack(row) => {
                self.written.count(Table::Stacks);
                if let Some(frames) = &row.frames {
                    let frames = folded(frames, row.complete);
                    self.last.insert((row.pid, row.tid), (row.time_ns, frames));
                }
            }
            Fact::Dispatch(row) => {
                self.written.count(Table::Dispatches);
                self.dispatch(&row);
            }
            Fact::DispatchRun(row) => {
                self.written.count(Table::DispatchRuns);
                // A run has no time of each dispatch, so no stack.
                self.count(None, row.kernel.as_deref(), row.count);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _damage: &[String]) -> Result<Written, ExportError> {
        for (stack, count) in &self.counts {
            writeln!(self.out, "{stack} {count}")?;
        }
        self.out.flush()?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_frames_or_lines() {
        let lines = "main\tapp\t0x10\tab\n-\tlib a;b.so\t0x123\t-\nf(a;b)\tapp\t0x20\tab\n-\t-\t0x7f00\t-";
        let expected = "main;[lib a:b.so+0x123];f(a:b);[0x7f00]";
        assert_eq!(folded(lines, true), expected);
        assert_eq!(folded(lines, false), format!("[truncated];{expected}"));
        assert_eq!(name("a\nb;c"), "a\\nb:c");
    }
}
