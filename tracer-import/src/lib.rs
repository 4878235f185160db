//! What other tools wrote about a run, as the events of tracer's model.
//!
//! A machine on which nothing can be installed still has ftrace, and often perf or trace-cmd; and AMD's runtimes write a log. These
//! texts have fewer facts than a recording: what they do not contain stays unknown. [`Importer::line`] takes one line after the other,
//! and [`Importer::record`] the records of trace.dat.
//!
//! Every line is untrusted. No line makes the importer panic, and none determines how much it allocates.

mod amd_log;
mod driver_events;
mod event_line;
mod event_text;
mod fields;
mod found;
mod ring_jobs;
pub mod rocpd;
mod script;
mod strace;
mod threads;
mod trace_dat;

use std::io::{Read, Seek};

use tracer_core::event::Event;

pub use trace_dat::{MAGIC as TRACE_DAT, TraceDat, TraceDatError};

pub use found::{Found, Kind, MAX_MALFORMED, MAX_NAMES, Malformed};

use amd_log::AmdLog;
use event_text::EventText;
use strace::Strace;
use trace_dat::Next;

/// The longest line that is read, in bytes. The callers cut longer lines: no tool writes such a line about one event.
pub const MAX_LINE: usize = 64 << 10;

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Took {
    /// Events for the model.
    Events(u64),
    /// A line that says nothing about an event: a header, an empty line.
    Nothing,
    /// An event of a kind that tracer does not use, with its name.
    Unused(String),
    /// The tool that wrote the text lost events: how many, at least one.
    Lost(u64),
    /// Neither an event nor a header.
    Foreign,
    /// An event that tracer uses, in a form that it cannot read.
    Malformed(String),
}

/// Returns whether tracer uses an event of the kernel of this name.
fn is_used(event: &str) -> bool {
    ring_jobs::step(event).is_some() || driver_events::is_one(event) || script::is_one(event)
}

/// Takes the lines of one file.
///
/// ```
/// use tracer_import::Importer;
///
/// let mut importer = Importer::new();
/// let mut events = 0;
/// let line = b"sh-12 [000] ..... 6.393446: drm_sched_job_run: dev=0000:03:00.0, fence=13:1, ring=comp_1.0.0, job count:0, \
///     hw job count:1, client_id:7";
/// importer.line(line, &mut |_| events += 1);
/// assert_eq!((events, importer.finish(&mut |_| ()).events), (1, 1));
/// ```
#[derive(Debug, Default)]
pub struct Importer {
    kind: Option<Kind>,
    events: EventText,
    log: AmdLog,
    strace: Strace,
    found: Found,
}

impl Importer {
    /// Returns an importer that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, without its newline, and passes the events in it to `out`.
    pub fn line(&mut self, line: &[u8], out: &mut impl FnMut(&Event<'_>)) {
        // Names of programs may be any bytes; everything else is ASCII.
        let text = String::from_utf8_lossy(line);
        let took = if line.len() > MAX_LINE {
            Took::Malformed(format!("it is longer than {MAX_LINE} bytes"))
        } else {
            self.read(&text, out)
        };
        self.found.add(&text, took);
    }

    /// Takes the next record of trace.dat, and passes the event in it to `out`. Returns `false` at the end. A file that cannot be read
    /// further ends there, which counts as one event that could not be read.
    pub fn record<R: Read + Seek>(&mut self, dat: &mut TraceDat<R>, out: &mut impl FnMut(&Event<'_>)) -> bool {
        self.kind = Some(Kind::TraceDat);
        let (text, took) = match dat.next() {
            Ok(None) => return false,
            Ok(Some(Next::Line(line))) => (line.body, self.events.event(&line, out)),
            Ok(Some(Next::Unknown(name))) => (name, Took::Malformed("its format is not understood".to_owned())),
            Ok(Some(Next::Lost(count))) => ("", Took::Lost(count)),
            Err(error) => {
                self.found.add("", Took::Malformed(error.to_string()));
                return false;
            }
        };
        self.found.add(text, took);
        true
    }

    /// Ends the file: passes on the last events, and returns what was in it.
    pub fn finish(mut self, out: &mut impl FnMut(&Event<'_>)) -> Found {
        self.events.finish(out);
        let mut found = self.found;
        found.kind = self.kind;
        match self.kind {
            Some(Kind::AmdLog) => found.log(&self.log),
            Some(Kind::Strace) => found.strace(&self.strace),
            Some(Kind::Events | Kind::TraceDat) | None => found.text(&self.events),
        }
        self.log.finish(out);
        found
    }

    /// Reads a line as what the file is. The first line that is one or the other decides, because their clocks differ.
    fn read(&mut self, text: &str, out: &mut impl FnMut(&Event<'_>)) -> Took {
        let took = match self.kind {
            Some(Kind::AmdLog) => self.log.line(text, out),
            Some(Kind::Strace) => self.strace.line(text, out),
            Some(Kind::Events | Kind::TraceDat) => Some(self.events.line(text, out)),
            None => return self.first(text, out),
        };
        took.unwrap_or(match text.trim() {
            "" => Took::Nothing,
            _ => Took::Foreign,
        })
    }

    /// Reads a line before it is known what the file is.
    fn first(&mut self, text: &str, out: &mut impl FnMut(&Event<'_>)) -> Took {
        if let Some(took) = self.log.line(text, out) {
            self.kind = Some(Kind::AmdLog);
            return took;
        }
        if let Some(took) = self.strace.line(text, out) {
            self.kind = Some(Kind::Strace);
            return took;
        }
        let took = self.events.line(text, out);
        if matches!(took, Took::Events(_) | Took::Unused(_) | Took::Malformed(_)) {
            self.kind = Some(Kind::Events);
        }
        took
    }
}
