//! `manifest.json`: where a trace comes from, how it was taken, and whether it is whole.
//!
//! Fields may be added at any time: a reader ignores those that it does not know and takes the default for those that
//! are not there. Everything else is a new [`FORMAT_VERSION`].

mod capture;
mod clock;
mod host;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use tracer_files::Folder;

pub use capture::{Device, Library, Probe, Scheduler, SchedulerKind};
pub use clock::{ClockSnapshot, rfc3339};
pub use host::Host;

use crate::error::{IoContext, StoreError};
use crate::file;
use crate::schema::Table;

/// Version of the format of traces that this crate writes, and the newest that it reads. From 2 on names of parts have
/// checksums.
pub const FORMAT_VERSION: u64 = 2;

/// Name of the manifest's file.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// Name of the file whose room on the disk the last manifest takes, should there be no other.
pub(crate) const RESERVE: &str = "reserve";

/// The largest manifest that is read, in bytes: many times that of a recording with thousands of libraries.
const MAX_BYTES: u64 = 64 << 20;

/// What `format` says: many a folder has a manifest.json.
const FORMAT: &str = "tracer-trace";

/// Where a trace comes from, how it was taken, and whether it is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `tracer-trace`.
    format: String,
    /// Version of the format.
    format_version: u64,
    /// What wrote it.
    pub tool: Tool,
    /// The machine.
    pub host: Host,
    /// What was traced.
    pub target: Target,
    /// Clocks at the start.
    pub started: ClockSnapshot,
    /// Clocks at the end; `None` while it is being recorded, and after the recorder was killed.
    #[serde(default)]
    pub ended: Option<ClockSnapshot>,
    /// How the command ended; `None` if it was no command, or has not ended.
    #[serde(default)]
    pub exit: Option<Exit>,
    /// What ended the recording; `None` while it goes on, after the recorder was killed, and in traces of versions before this
    /// field.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// How traced processes were paused for their probes; `None` while it is recorded, and in traces of versions before this
    /// field.
    #[serde(default)]
    pub pauses: Option<Pauses>,
    /// What says that devices were simulated; `None` is no claim that they were not.
    #[serde(default)]
    pub simulated: Option<String>,
    /// GPUs.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Libraries in which probes were looked for.
    #[serde(default)]
    pub libraries: Vec<Library>,
    /// Probes, attached or not.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// Sources that were active: `doorbells`, `sdma_doorbells`, `reserves`, `ioctls`, `kernel_rings`, ...
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Events lost, by source.
    #[serde(default)]
    pub losses: BTreeMap<String, u64>,
    /// What a reader of the trace has to know, in sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Rows of every table, by its name; empty until the trace is complete.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Whether the recorder came to its end and wrote everything.
    pub complete: bool,
}

/// What wrote a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What was traced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A command that the recorder ran.
    Command {
        /// Its arguments, from the program's name on.
        argv: Vec<String>,
    },
    /// Processes that were running.
    Attached {
        /// Their ids.
        pids: Vec<u32>,
    },
    /// Every process of the machine.
    System,
    /// Another tool's trace.
    Imported {
        /// Its path.
        from: String,
    },
}

/// Pauses of traced processes, of each of which tracer resumed the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// How many there were.
    pub count: u64,
    /// The longest one until its probes were in, ns.
    pub longest_ns: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It exited with that code.
    Code(i32),
    /// That signal killed it.
    Signal(i32),
}

/// What ended a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EndedBy {
    /// The command exited.
    CommandExited,
    /// All processes that the recorder was attached to have exited.
    TargetExited,
    /// The time of `--duration` was over.
    Duration,
    /// A signal to the recorder.
    Signal {
        /// Its name, `SIGTERM`.
        name: String,
    },
    /// The user of `tracer top`, by a key or the end of the viewer.
    User,
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Manifest {
    /// The manifest of a trace that starts now.
    #[must_use]
    pub fn new(tool: Tool, host: Host, target: Target, started: ClockSnapshot) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            tool,
            host,
            target,
            started,
            ended: None,
            exit: None,
            ended_by: None,
            pauses: None,
            simulated: None,
            devices: Vec::new(),
            libraries: Vec::new(),
            probes: Vec::new(),
            capabilities: Vec::new(),
            losses: BTreeMap::new(),
            warnings: Vec::new(),
            counts: BTreeMap::new(),
            complete: false,
        }
    }

    /// Version of the format that the trace is in.
    #[must_use]
    pub const fn format_version(&self) -> u64 {
        self.format_version
    }

    /// Rows of a table, as counted by the recorder; `None` in a trace that is not complete.
    #[must_use]
    pub fn count(&self, table: Table) -> Option<u64> {
        self.counts.get(table.name()).copied()
    }

    /// Reads the manifest of a trace: a regular file of bounded size.
    pub(crate) fn read(trace: &Folder) -> Result<Self, StoreError> {
        let path = trace.path().join(FILE_NAME);
        let not_a_trace = |reason: String| StoreError::NotATrace {
            path: trace.path().to_owned(),
            reason,
        };
        let text = match trace.read_file(OsStr::new(FILE_NAME), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_trace(format!("it has no {FILE_NAME}")));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(StoreError::Manifest {
                    path,
                    reason: error.to_string(),
                });
            }
            text => text.context("read", &path)?,
        };
        let unfit = |error: serde_json::Error| StoreError::Manifest {
            path: path.clone(),
            reason: error.to_string(),
        };
        // Only the version says how to read the rest.
        let Header { format, format_version } = serde_json::from_slice(&text).map_err(unfit)?;
        if format != FORMAT {
            return Err(not_a_trace(format!("its {FILE_NAME} belongs to another program")));
        }
        if format_version > FORMAT_VERSION {
            return Err(StoreError::Version {
                path: trace.path().to_owned(),
                found: format_version,
                known: FORMAT_VERSION,
            });
        }
        serde_json::from_slice(&text).map_err(unfit)
    }

    /// Writes the manifest of a trace, in one step.
    pub(crate) fn write(&self, trace: &Folder) -> Result<(), StoreError> {
        let path = trace.path().join(FILE_NAME);
        file::write_atomically(trace, FILE_NAME, |file| {
            let written = serde_json::to_writer_pretty(&mut *file, self).map_err(io::Error::from);
            written.and_then(|()| file.write_all(b"\n")).context("write", &path)
        })?;
        Ok(())
    }
}

/// What every version of the manifest has.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: String,
    #[serde(default)]
    format_version: u64,
}
