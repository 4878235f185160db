//! What was in a file.

use std::collections::BTreeMap;

use crate::Took;
use crate::amd_log::AmdLog;
use crate::event_text::EventText;
use crate::strace::Strace;

/// The most lines that are kept because they could not be read. All are counted.
pub const MAX_MALFORMED: usize = 3;

/// The most names of unused events that are kept. All are counted.
pub const MAX_NAMES: usize = 64;

/// The longest text that is kept of a line, in characters.
const MAX_TEXT: usize = 160;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Events of the kernel, as ftrace, trace-cmd and perf write them.
    Events,
    /// The log of AMD's runtimes.
    AmdLog,
    /// Output of strace.
    Strace,
    /// trace.dat of trace-cmd. Its records count as lines.
    TraceDat,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Its text, cut. It is foreign, and not escaped.
    pub text: String,
}

/// What was in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What the file is; `None` if nothing in it shows that.
    pub kind: Option<Kind>,
    /// Lines.
    pub lines: u64,
    /// Events that were passed on.
    pub events: u64,
    /// Events that tracer does not use, by name; of the first [`MAX_NAMES`] names.
    pub unused: BTreeMap<String, u64>,
    /// Events that tracer does not use, of every name.
    pub unused_total: u64,
    /// Events that the other tool lost, as far as the text says; of a log, packets that it lacks between those that it has.
    pub lost: u64,
    /// Lines that are neither events nor headers; in a log, those that the program wrote itself.
    pub foreign: u64,
    /// The first of them.
    pub first_foreign: Option<Malformed>,
    /// Events in a form that could not be read.
    pub malformed_total: u64,
    /// The first of them.
    pub malformed: Vec<Malformed>,
    /// Time of the first and of the last event, by the clock of the text, ns; `None` if there is no event.
    pub span_ns: Option<(u64, u64)>,
    /// Whether the scheduler's events were on: at least one is there.
    pub has_jobs: bool,
    /// Submissions of jobs, and ioctls, whose process the text does not name.
    pub without_process: u64,
    /// Whether amdgpu's own events were on: at least one is there.
    pub has_driver_events: bool,
    /// What the script of `tracer record --script` captured, in the words of capabilities; `None` if no script wrote the text.
    pub captured: Option<Vec<String>>,
}

impl Found {
    /// Counts a line.
    pub(crate) fn add(&mut self, line: &str, took: Took) {
        self.lines += 1;
        match took {
            Took::Events(count) => self.events += count,
            Took::Nothing => {}
            Took::Unused(name) => {
                self.unused_total += 1;
                if self.unused.len() < MAX_NAMES || self.unused.contains_key(&name) {
                    *self.unused.entry(name).or_default() += 1;
                }
            }
            Took::Lost(count) => self.lost = self.lost.saturating_add(count),
            Took::Foreign => {
                self.foreign += 1;
                if self.first_foreign.is_none() {
                    self.first_foreign = Some(self.quote(line, "it is no event".to_owned()));
                }
            }
            Took::Malformed(reason) => {
                self.malformed_total += 1;
                if self.malformed.len() < MAX_MALFORMED {
                    self.malformed.push(self.quote(line, reason));
                }
            }
        }
    }

    /// Adds what the lines as a whole have shown.
    pub(crate) fn text(&mut self, text: &EventText) {
        self.span_ns = text.span_ns;
        self.has_jobs = text.has_jobs;
        self.has_driver_events = text.has_driver_events;
        self.without_process = text.without_process;
        self.captured = text.script.captured.clone();
        self.lost = self.lost.saturating_add(text.script.missing());
    }

    /// Adds what the log as a whole has shown.
    pub(crate) fn log(&mut self, log: &AmdLog) {
        self.span_ns = log.span_ns;
        self.lost = self.lost.saturating_add(log.missing());
    }

    /// Adds what the calls as a whole have shown.
    pub(crate) fn strace(&mut self, strace: &Strace) {
        self.span_ns = strace.span_ns;
        self.without_process = strace.without_process;
        self.lost = self.lost.saturating_add(strace.unfinished());
    }

    /// Describes the line that was read last.
    fn quote(&self, line: &str, reason: String) -> Malformed {
        Malformed {
            line: self.lines,
            reason,
            text: line.trim().chars().take(MAX_TEXT).collect(),
        }
    }
}
