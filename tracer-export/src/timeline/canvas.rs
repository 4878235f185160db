//! What a timeline consists of, and what a format must be able to draw.

use std::io;

use tracer_core::tables::{Column, Datum, Dispatch, GpuTime, Record};

use crate::About;

/// A track of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Track {
    /// What concerns the recording itself: losses.
    Trace,
    /// Rings of the kernel driver.
    Rings,
    /// A ring, by the order in which they were seen.
    Ring {
        /// Its number in the export.
        ring: u32,
    },
    /// A process.
    Process {
        /// Its id.
        pid: u32,
    },
    /// A thread of it.
    Thread {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A queue of a process.
    Queue {
        /// The process.
        pid: u32,
        /// Number of the queue in the trace.
        queue: u32,
    },
    /// A proxy of a process.
    Proxy {
        /// The process.
        pid: u32,
        /// Number of the proxy in the trace.
        proxy: u32,
    },
}

impl Track {
    /// Returns the track that this one belongs to.
    #[must_use]
    pub fn around(self) -> Option<Self> {
        match self {
            Self::Trace | Self::Rings | Self::Process { .. } => None,
            Self::Ring { .. } => Some(Self::Rings),
            Self::Thread { pid, .. } | Self::Queue { pid, .. } | Self::Proxy { pid, .. } => Some(Self::Process { pid }),
        }
    }
}

/// Something on a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name, for people.
    pub name: String,
    /// Its kind, to filter by.
    pub category: &'static str,
    /// The columns of its row.
    pub args: Args,
    /// Of an API call that submitted something: its number, with which a flow begins.
    pub submits: Option<u64>,
    /// Of something that an API call submitted: the number of the call, whose flow passes through it.
    pub submitted_by: Option<u64>,
}

impl Event {
    /// Returns an event with the columns of a row.
    #[must_use]
    pub fn new(name: &str, category: &'static str, record: Record) -> Self {
        Self {
            name: name.to_owned(),
            category,
            args: Args(vec![record]),
            submits: None,
            submitted_by: None,
        }
    }

    /// Returns the event with another name.
    #[must_use]
    pub fn named(mut self, name: String) -> Self {
        self.name = name;
        self
    }
}

/// Arguments: the columns of one or more rows, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args(Vec<Record>);

impl Args {
    /// Adds the columns of another row. A column that is there already keeps its value.
    pub fn add(&mut self, record: Record) {
        self.0.push(record);
    }

    /// Returns the columns and their values, each name once.
    #[must_use]
    pub fn each(&self) -> Vec<(&'static Column, Datum<'_>)> {
        let mut all: Vec<(&'static Column, Datum<'_>)> = Vec::new();
        for record in &self.0 {
            let earlier = all.len();
            for (column, datum) in record.data() {
                match all[..earlier].iter_mut().find(|(known, _)| known.name == column.name) {
                    Some((_, known)) if *known == Datum::Missing => *known = datum,
                    Some(_) => {}
                    None => all.push((column, datum)),
                }
            }
        }
        all
    }
}

/// When the GPU ran a dispatch, on the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Start, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// The GPU, by the KFD's id.
    pub gpu_id: Option<u32>,
    /// Workgroups in each dimension, rounded up, and work items of each; `None` without a row of the dispatch.
    pub launch: Option<([u32; 3], [u16; 3])>,
}

impl Gpu {
    /// Returns the time of a dispatch, if it has a date.
    #[must_use]
    pub fn of(time: &GpuTime, dispatch: Option<&Dispatch>) -> Option<Self> {
        let (begin, end) = (time.start_ns?, time.end_ns?);
        let launch = dispatch.map(|row| {
            let groups = [0, 1, 2].map(|at| row.grid[at].div_ceil(u32::from(row.workgroup[at]).max(1)));
            (groups, row.workgroup)
        });
        (begin <= end).then_some(Self {
            begin,
            end,
            gpu_id: time.gpu_id,
            launch,
        })
    }
}

/// Draws a timeline in a format. Times are CLOCK_MONOTONIC in ns. Calls come in no order of time, except that those of
/// [`Self::begin`] and [`Self::end`] on one track nest.
pub trait Canvas {
    /// Adds a track, or names it again. A track comes before what is on it, and after the track around it.
    ///
    /// # Errors
    /// If the output cannot be written, as for every function here.
    fn track(&mut self, track: Track, name: &str) -> io::Result<()>;

    /// Begins a slice of a thread. Its end is known, or comes with [`Self::end`] only.
    ///
    /// # Errors
    /// As above.
    fn begin(&mut self, track: Track, at: u64, end: Option<u64>, event: &Event) -> io::Result<()>;

    /// Ends the innermost slice. If it is not `finished`, its end is unknown, and it was open at `at` at the latest.
    ///
    /// # Errors
    /// As above.
    fn end(&mut self, track: Track, at: u64, finished: bool) -> io::Result<()>;

    /// Draws an instant.
    ///
    /// # Errors
    /// As above.
    fn instant(&mut self, track: Track, at: u64, event: &Event) -> io::Result<()>;

    /// Draws a span, which can overlap others of its track.
    ///
    /// # Errors
    /// As above.
    fn span(&mut self, track: Track, begin: u64, end: u64, event: &Event) -> io::Result<()>;

    /// Draws a dispatch: when its doorbell rang, if its row is there, and when the GPU ran it, if that is known.
    ///
    /// # Errors
    /// As above.
    fn dispatch(&mut self, track: Track, doorbell: Option<u64>, gpu: Option<&Gpu>, event: &Event) -> io::Result<()>;

    /// Sets the value of a counter.
    ///
    /// # Errors
    /// As above.
    fn counter(&mut self, track: Track, name: &str, at: u64, value: u64) -> io::Result<()>;

    /// Writes the metadata, and completes the output.
    ///
    /// # Errors
    /// As above.
    fn finish(&mut self, about: &About, damage: &[String]) -> io::Result<()>;
}
