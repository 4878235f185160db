//! The properties of a trace that a judge must know.

use std::collections::{BTreeMap, BTreeSet};

use super::policy::Scheduler;
use crate::capabilities::Capabilities;
use crate::tables::Table;

/// The properties of a trace. The default is a trace of which nothing is known: no rule passes on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// What was watched.
    pub capabilities: Capabilities,
    /// Whether the recorder finished.
    pub complete: bool,
    /// What is unreadable in the trace, or missing from it, one sentence each.
    pub damage: Vec<String>,
    /// Tables with rows that are unreadable or missing.
    pub unread: BTreeSet<Table>,
    /// Lost events, by source, as the manifest counts them. [`crate::tables::Loss`] rows count as well.
    pub losses: BTreeMap<String, u64>,
    /// GPUs.
    pub devices: Vec<Device>,
    /// Whether the trace was made of the text of another tool.
    pub imported: bool,
    /// Paths of the HSA runtimes that traced processes loaded.
    pub libraries: Vec<String>,
    /// Doorbell probes that could not be attached to a library. Doorbells that these functions rang were not seen.
    pub doorbell_probes_missing: u64,
    /// The evidence that the devices were simulated.
    pub simulated: Option<String>,
    /// When the recording of a command began, CLOCK_MONOTONIC ns: its processes did everything later than that. `None` if the
    /// processes existed before the recording.
    pub command_began_ns: Option<u64>,
    /// Whether the kernel reports how often it did not run the programs on submits of jobs. If it does, a submit that is neither
    /// seen nor lost came before the recording.
    pub submits_counted: bool,
    /// How the command ended; `None` if no command was recorded.
    pub command: Option<Ended>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// KFD gpu id.
    pub gpu_id: u32,
    /// Name of the GPU.
    pub name: String,
    /// Instruction set, in the numbers of the KFD: 110000 for gfx1100; 0 if unknown.
    pub gfx_target_version: u32,
    /// The scheduler of its user queues; `None` if unknown.
    pub scheduler: Option<Scheduler>,
    /// The evidence for the scheduler, in sentences.
    pub evidence: Vec<String>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command exited with this code.
    Code(i32),
    /// This signal killed the command.
    Signal(i32),
    /// The command did not exit while it was recorded.
    Unknown,
}
