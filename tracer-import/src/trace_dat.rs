//! trace.dat, as trace-cmd writes it: formats 6 and 7 (trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)).
//!
//! The file has the kernel's own pages of records, and the formats of their events. This prints each record of an event that tracer
//! uses as the kernel would, so the rest of the import is that of text.

mod cpu;
mod data;
mod head;
mod print;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    io::{Read, Seek},
};

use crate::{event_line::EventLine, is_used};
use cpu::Cpu;
use head::Head;
use print::Print;

/// The first bytes of a file.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceDatError {
    /// The system's error. At the end of the file: it is cut short.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It says something that cannot be.
    #[error("the file is damaged: {0}")]
    Damaged(&'static str),
    /// A kind of file that tracer does not read.
    #[error("{0}")]
    Unsupported(String),
}

/// A result of reading a file.
pub type Result<T> = std::result::Result<T, TraceDatError>;

/// An event of the file.
#[derive(Debug)]
pub struct Event {
    name: String,
    /// How it is printed, if tracer uses it; `None` inside if that is not understood.
    print: Option<Option<Print>>,
}

/// What is next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// A record of an event.
    Line(EventLine<'a>),
    /// A record of an event that tracer uses, in a form that is not understood: the name of the event.
    Unknown(&'a str),
    /// This many records were overwritten before they were read.
    Lost(u64),
}

/// A file that is being read.
#[derive(Debug)]
pub struct TraceDat<R> {
    file: R,
    events: HashMap<u16, Event>,
    names: HashMap<u32, String>,
    cpus: Vec<Cpu>,
    /// Processors that have a record, by its time.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    lost: u64,
    /// Pages that were not understood to their end.
    damaged: u64,
    body: String,
}

impl<R: Read + Seek> TraceDat<R> {
    /// Reads everything before the records.
    ///
    /// # Errors
    /// Says why the file cannot be read.
    pub fn open(mut file: R) -> Result<Self> {
        let head = Head::read(&mut file, is_used)?;
        let mut dat = Self {
            file,
            events: head.events,
            names: head.names,
            cpus: head.cpus,
            order: BinaryHeap::new(),
            lost: 0,
            damaged: 0,
            body: String::new(),
        };
        for cpu in 0..dat.cpus.len() {
            dat.advance(cpu)?;
        }
        Ok(dat)
    }

    /// Has the next record of a processor wait for its turn.
    fn advance(&mut self, cpu: usize) -> Result<()> {
        let Self { file, cpus, .. } = self;
        let Some(of_cpu) = cpus.get_mut(cpu) else { return Ok(()) };
        let time = of_cpu.time(file)?;
        self.lost = self.lost.saturating_add(std::mem::take(&mut of_cpu.lost));
        self.damaged += std::mem::take(&mut of_cpu.damaged);
        self.order.extend(time.map(|time| Reverse((time, cpu))));
        Ok(())
    }

    /// Returns what is next, in the order of time; `None` at the end.
    ///
    /// # Errors
    /// Says why the file cannot be read further.
    pub(crate) fn next(&mut self) -> Result<Option<Next<'_>>> {
        if self.lost > 0 {
            return Ok(Some(Next::Lost(std::mem::take(&mut self.lost))));
        }
        if self.damaged > 0 {
            self.damaged -= 1;
            return Ok(Some(Next::Unknown("a page of records")));
        }
        let Some(Reverse((time_ns, cpu))) = self.order.pop() else {
            return Ok(None);
        };
        let raw = self.cpus[cpu].record();
        let kind = raw.first_chunk().map(|&bytes| u16::from_le_bytes(bytes));
        let tid = raw.get(4..8).and_then(|bytes| bytes.first_chunk());
        let tid = tid.map_or(0, |&bytes| u32::from_le_bytes(bytes));
        let event = kind.and_then(|kind| self.events.get(&kind));
        self.body.clear();
        let is_whole = match event {
            Some(Event { print: Some(print), .. }) => {
                let printed = print.as_ref().and_then(|print| print.render(raw, &mut self.body));
                printed.is_some()
            }
            _ => true,
        };
        self.cpus[cpu].pass();
        self.advance(cpu)?;
        let name = event_name(&self.events, kind);
        if !is_whole {
            return Ok(Some(Next::Unknown(name)));
        }
        Ok(Some(Next::Line(EventLine {
            comm: self.names.get(&tid).map_or("", String::as_str),
            tid,
            pid: None,
            time_ns,
            name,
            body: self.body.trim(),
        })))
    }
}

fn event_name(events: &HashMap<u16, Event>, kind: Option<u16>) -> &str {
    let event = kind.and_then(|kind| events.get(&kind));
    event.map_or("unknown", |event| event.name.as_str())
}
