//! The JSON of Chrome's trace viewer, which Perfetto and many other viewers read: the object form with `traceEvents`.
//!
//! Times are microseconds with three decimals, which are the ns of the trace, exactly. Queues and rings are threads with made-up
//! ids, above every id that Linux gives to a thread.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use tracer_core::foreign::Json;
use tracer_core::tables::Datum;

use crate::lanes::Lanes;
use crate::timeline::{Args, Canvas, Event, Gpu, Timeline, Track};
use crate::{About, ExportError};

/// The first id above those of Linux's threads and processes: PID_MAX_LIMIT of include/linux/threads.h is 4194304.
const MADE_UP: u64 = 1 << 23;

/// Process of the tracks that belong to no process.
const NO_PROCESS: u64 = MADE_UP;

/// Ids of the tracks of a queue: one per lane.
const LANES: u64 = 64;

/// Writes Chrome JSON.
#[derive(Debug)]
pub struct Chrome<W> {
    out: W,
    has_events: bool,
    names: HashMap<Track, String>,
    lanes: HashMap<Track, Lanes>,
    /// Lanes that have a name.
    named: HashMap<Track, usize>,
}

impl<W: Write> Chrome<W> {
    /// Returns an exporter that writes to `out`.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn exporter(mut out: W, about: &About) -> Result<Timeline<Self>, ExportError> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let chrome = Self {
            out,
            has_events: false,
            names: HashMap::new(),
            lanes: HashMap::new(),
            named: HashMap::new(),
        };
        Ok(Timeline::new(chrome, about))
    }

    /// Writes one event, which is complete but for its closing brace.
    fn write(&mut self, event: &str) -> io::Result<()> {
        let comma = if self.has_events { "," } else { "" };
        self.has_events = true;
        // The document may be shown on a terminal, and has names from other programs.
        write!(self.out, "{comma}\n{}}}", Json(event))
    }

    fn metadata(&mut self, kind: &str, (pid, tid): (u64, u64), name: &str) -> io::Result<()> {
        let name = string(name);
        self.write(&format!(
            r#"{{"ph":"M","name":"{kind}","pid":{pid},"tid":{tid},"args":{{"name":{name}}}"#
        ))
    }

    /// Returns the ids of a lane of a track. A lane that is new gets a name.
    fn lane(&mut self, track: Track, begin: u64, end: u64) -> io::Result<(u64, u64)> {
        let lane = self.lanes.entry(track).or_default().take(begin, end);
        // The first lane has the name of the track.
        let named = self.named.entry(track).or_insert(1);
        let is_new = lane >= *named;
        *named = (*named).max(lane + 1);
        let (pid, tid) = ids(track);
        let place = (pid, tid + (lane as u64).min(LANES - 1));
        if is_new {
            let name = self.names.get(&track).cloned().unwrap_or_default();
            self.metadata("thread_name", place, &format!("{name}, at the same time"))?;
        }
        Ok(place)
    }

    /// Writes the begin of an arrow from an API call, or a step of it to what the call submitted. It follows the event that it belongs
    /// to, at the same time: viewers take the last event of the thread.
    fn flow(&mut self, event: &Event, (pid, tid): (u64, u64), at: u64) -> io::Result<()> {
        let (phase, call) = match (event.submits, event.submitted_by) {
            (Some(call), _) => ("s", call),
            (None, Some(call)) => ("t", call),
            (None, None) => return Ok(()),
        };
        let at = Micros(at);
        self.write(&format!(
            r#"{{"ph":"{phase}","bp":"e","id":{call},"name":"submit","cat":"flow","ts":{at},"pid":{pid},"tid":{tid}"#
        ))
    }

    fn complete(&mut self, place: (u64, u64), begin: u64, end: u64, event: &Event) -> io::Result<()> {
        let head = head("X", place, begin, event);
        let length = Micros(end.saturating_sub(begin));
        self.write(&format!(r#"{head},"dur":{length},"args":{}"#, arguments(&event.args)))
    }

    fn instant_at(&mut self, place: (u64, u64), at: u64, event: &Event) -> io::Result<()> {
        let head = head("i", place, at, event);
        self.write(&format!(r#"{head},"s":"t","args":{}"#, arguments(&event.args)))
    }
}

impl<W: Write> Canvas for Chrome<W> {
    fn track(&mut self, track: Track, name: &str) -> io::Result<()> {
        self.names.insert(track, name.to_owned());
        let place = ids(track);
        match track {
            Track::Process { .. } => self.metadata("process_name", place, name),
            Track::Trace | Track::Rings => {
                self.metadata("process_name", place, "not of a process")?;
                self.metadata("thread_name", place, name)
            }
            _ => self.metadata("thread_name", place, name),
        }
    }

    fn begin(&mut self, track: Track, at: u64, end: Option<u64>, event: &Event) -> io::Result<()> {
        let place = ids(track);
        match end {
            Some(end) => self.complete(place, at, end, event)?,
            None => {
                let head = head("B", place, at, event);
                self.write(&format!(r#"{head},"args":{}"#, arguments(&event.args)))?;
            }
        }
        self.flow(event, place, at)
    }

    fn end(&mut self, track: Track, at: u64, finished: bool) -> io::Result<()> {
        if finished {
            return Ok(());
        }
        let (pid, tid) = ids(track);
        let at = Micros(at);
        self.write(&format!(
            r#"{{"ph":"E","ts":{at},"pid":{pid},"tid":{tid},"args":{{"unfinished":true}}"#
        ))
    }

    fn instant(&mut self, track: Track, at: u64, event: &Event) -> io::Result<()> {
        let place = ids(track);
        self.instant_at(place, at, event)?;
        self.flow(event, place, at)
    }

    fn span(&mut self, track: Track, begin: u64, end: u64, event: &Event) -> io::Result<()> {
        let place = self.lane(track, begin, end)?;
        self.complete(place, begin, end, event)
    }

    fn dispatch(&mut self, track: Track, doorbell: Option<u64>, gpu: Option<&Gpu>, event: &Event) -> io::Result<()> {
        match (gpu, doorbell) {
            (Some(gpu), _) => {
                let place = self.lane(track, gpu.begin, gpu.end)?;
                self.complete(place, gpu.begin, gpu.end, event)?;
                self.flow(event, place, gpu.begin)
            }
            (None, Some(at)) => self.instant(track, at, event),
            (None, None) => Ok(()),
        }
    }

    fn counter(&mut self, track: Track, name: &str, at: u64, value: u64) -> io::Result<()> {
        let (pid, _) = ids(track);
        let (name, at) = (string(name), Micros(at));
        self.write(&format!(
            r#"{{"ph":"C","name":{name},"ts":{at},"pid":{pid},"args":{{"value":{value}}}"#
        ))
    }

    fn finish(&mut self, about: &About, damage: &[String]) -> io::Result<()> {
        let mut about = about.clone();
        if !damage.is_empty() {
            about.damage = damage.to_vec();
        }
        let about = serde_json::to_string(&about)?;
        writeln!(self.out, "\n],\"otherData\":{}}}", Json(&about))?;
        self.out.flush()
    }
}

/// Returns the process and thread of a track.
fn ids(track: Track) -> (u64, u64) {
    // Some viewers know threads by their ids alone, and keep 32 bits of them.
    let many = |first: u64, number: u32| first + u64::from(number) * LANES;
    match track {
        Track::Trace => (NO_PROCESS, MADE_UP),
        Track::Rings => (NO_PROCESS, MADE_UP + 1),
        Track::Ring { ring } => (NO_PROCESS, many(MADE_UP + LANES, ring)),
        Track::Process { pid } => (pid.into(), pid.into()),
        Track::Thread { pid, tid } => (pid.into(), tid.into()),
        Track::Queue { pid, queue } => (pid.into(), many(2 * MADE_UP, queue)),
        Track::Proxy { pid, proxy } => (pid.into(), many(1 << 30, proxy)),
    }
}

fn head(phase: &str, (pid, tid): (u64, u64), at: u64, event: &Event) -> String {
    let (name, category, at) = (string(&event.name), event.category, Micros(at));
    format!(r#"{{"ph":"{phase}","name":{name},"cat":"{category}","ts":{at},"pid":{pid},"tid":{tid}"#)
}

fn arguments(args: &Args) -> String {
    let mut text = String::from("{");
    for (column, datum) in args.each() {
        let name = column.name;
        let comma = if text.len() > 1 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = match datum {
            Datum::Missing => write!(text, "{comma}\"{name}\":null"),
            Datum::Unsigned(n) if column.unit == "address" => write!(text, "{comma}\"{name}\":\"{n:#x}\""),
            Datum::Unsigned(n) => write!(text, "{comma}\"{name}\":{n}"),
            Datum::Signed(n) => write!(text, "{comma}\"{name}\":{n}"),
            Datum::Bool(is) => write!(text, "{comma}\"{name}\":{is}"),
            Datum::Text(value) => write!(text, "{comma}\"{name}\":{}", string(&value)),
        };
    }
    text.push('}');
    text
}

/// Returns a string of JSON.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A time in ns, written in microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
