//! `manifest.json`: where a trace comes from, how it was taken, and whether it is whole.
//!
//! Fields may be added at any time: a reader ignores unknown fields and uses the default for absent ones. Any other change is a new
//! [`FORMAT_VERSION`].

mod capture;
mod clock;
mod host;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracer_core::backend::Backend;
use tracer_core::family::Family;
use tracer_core::tables::Table;
use tracer_files::Folder;

pub use capture::{Device, Library, Probe, Scheduler, SchedulerKind};
pub use clock::{ClockSnapshot, rfc3339};
pub use host::Host;

use crate::error::{IoContext, StoreError};
use crate::file;

/// Version of the format of traces that this crate writes, and the newest that it reads. From version 2 on, names of parts have
/// checksums.
pub const FORMAT_VERSION: u64 = 2;

/// Name of the manifest's file.
pub(crate) const FILE_NAME: &str = "manifest.json";

/// Name of the file that reserves disk space for the last manifest, in case the disk is full.
pub(crate) const RESERVE: &str = "reserve";

/// The maximum size of a manifest to read, in bytes: many times that of a recording with thousands of libraries.
const MAX_BYTES: u64 = 64 << 20;

/// The value of `format`, because many folders have a manifest.json.
const FORMAT: &str = "tracer-trace";

/// Where a trace comes from, how it was taken, and whether it is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// Always `tracer-trace`.
    format: String,
    /// Version of the format.
    format_version: u64,
    /// The tool that wrote the trace.
    pub tool: Tool,
    /// The machine.
    pub host: Host,
    /// The traced processes.
    pub target: Target,
    /// How it was captured; `None` for imported traces, and in traces of versions before this field, which eBPF programs captured.
    #[serde(default)]
    pub backend: Option<Backend>,
    /// Clocks at the start.
    pub started: ClockSnapshot,
    /// Clocks at the end; `None` during the recording, and after the recorder was killed.
    #[serde(default)]
    pub ended: Option<ClockSnapshot>,
    /// How the command exited; `None` if the target is not a command, or has not exited.
    #[serde(default)]
    pub exit: Option<Exit>,
    /// The reason why the recording ended; `None` during the recording, after the recorder was killed, and in traces of versions
    /// before this field.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// Pauses of traced processes for their probes; `None` during the recording, and in traces of versions before this field.
    #[serde(default)]
    pub pauses: Option<Pauses>,
    /// The reason to say that devices were simulated. `None` does not claim that they were not.
    #[serde(default)]
    pub simulated: Option<String>,
    /// GPUs.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Libraries that were searched for probes.
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
    /// Warnings for readers of the trace, in sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Rows of every table, by its name; empty until the trace is complete.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Whether the recorder finished and wrote everything.
    pub complete: bool,
}

/// The tool that wrote a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The traced processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// A command that the recorder ran.
    Command {
        /// The command's arguments, from the program's name on.
        argv: Vec<String>,
    },
    /// Processes that already ran.
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

/// Pauses of traced processes. tracer resumed the process after each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// The number of pauses.
    pub count: u64,
    /// The longest pause until the probes were attached, ns.
    pub longest_ns: u64,
}

/// How a command exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// The reason why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EndedBy {
    /// The command exited.
    CommandExited,
    /// All processes that the recorder was attached to exited.
    TargetExited,
    /// The time of `--duration` elapsed.
    Duration,
    /// A signal to the recorder.
    Signal {
        /// The signal's name, `SIGTERM`.
        name: String,
    },
    /// The user of `tracer top`, by a key or by closing the viewer.
    User,
    /// A reason that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Manifest {
    /// Returns the manifest of a trace that starts now.
    #[must_use]
    pub fn new(tool: Tool, host: Host, target: Target, started: ClockSnapshot) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            tool,
            host,
            target,
            backend: None,
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

    /// Returns how many compute queues each GPU runs at once, by its gpu id, as far as the trace says.
    #[must_use]
    pub fn compute_queues(&self) -> BTreeMap<u32, u32> {
        let of = |device: &Device| Some((device.gpu_id, device.compute_queues?));
        self.devices.iter().filter_map(of).collect()
    }

    /// Returns what a hit of the cheapest probe on a launch costs by itself, in ns; `None` if it was not measured.
    #[must_use]
    pub fn hit_ns(&self) -> Option<u64> {
        let is_of_launches = |probe: &&Probe| matches!(probe.family, Family::Api | Family::Reserve | Family::Doorbell);
        let probes = self.probes.iter().filter(is_of_launches).filter(|probe| probe.attached);
        probes.filter_map(|probe| probe.hit_ns).min()
    }

    /// Returns the format version of the trace.
    #[must_use]
    pub const fn format_version(&self) -> u64 {
        self.format_version
    }

    /// Returns the rows of a table as counted by the recorder; `None` in a trace that is not complete.
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
        let unfit = |reason: String| StoreError::Manifest {
            path: path.clone(),
            reason,
        };
        let text = trace.read_file(OsStr::new(FILE_NAME), MAX_BYTES);
        let text = text.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Err(not_a_trace(format!("it has no {FILE_NAME}"))),
            io::ErrorKind::InvalidInput => Err(unfit(error.to_string())),
            _ => Err(error).context("read", &path),
        })?;
        // The version determines how to read the rest.
        let header = serde_json::from_slice(&text).map_err(|error| unfit(error.to_string()))?;
        let Header { format, format_version } = header;
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
        serde_json::from_slice(&text).map_err(|error| unfit(error.to_string()))
    }

    /// Writes the manifest of a trace atomically.
    pub(crate) fn write(&self, trace: &Folder) -> Result<(), StoreError> {
        let path = trace.path().join(FILE_NAME);
        let named = |_| FILE_NAME.to_owned();
        file::write(trace, FILE_NAME, named, |file| {
            let written = serde_json::to_writer_pretty(&mut *file, self).map_err(io::Error::from);
            written.and_then(|()| file.write_all(b"\n")).context("write", &path)
        })
    }
}

/// The fields that every version of the manifest has.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: String,
    #[serde(default)]
    format_version: u64,
}
