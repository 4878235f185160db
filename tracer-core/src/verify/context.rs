//! What a trace says of itself, as far as a judge has to know.

use std::collections::BTreeMap;

use super::policy::Scheduler;
use crate::summary::Capabilities;

/// What a trace says of itself. The default is a trace of which nothing is known: no rule passes on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// What was watched.
    pub capabilities: Capabilities,
    /// Whether the recorder came to its end.
    pub complete: bool,
    /// What can't be read of it, or is missing, one sentence each.
    pub damage: Vec<String>,
    /// Events lost, by source, as the manifest counts them. [`crate::fact::Loss`] rows count as well.
    pub losses: BTreeMap<String, u64>,
    /// GPUs.
    pub devices: Vec<Device>,
    /// Paths of the HSA runtimes that traced processes loaded.
    pub libraries: Vec<String>,
    /// Doorbell probes that could not be attached to a library: what rang through these functions was not seen.
    pub doorbell_probes_missing: u64,
    /// The sign that devices were simulated.
    pub simulated: Option<String>,
    /// When the recording of a command began, CLOCK_MONOTONIC ns: everything that its processes did came later. `None`
    /// if processes were there before the recording.
    pub command_began_ns: Option<u64>,
    /// Whether the kernel tells how often it did not run the programs on jobs' submits: then a submit that is neither seen
    /// nor lost came before the recording.
    pub submits_counted: bool,
    /// How the command ended; `None` if no command was recorded.
    pub command: Option<Ended>,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// KFD gpu id.
    pub gpu_id: u32,
    /// Its name.
    pub name: String,
    /// Instruction set, as the KFD numbers it: 110000 for gfx1100; 0 if unknown.
    pub gfx_target_version: u32,
    /// What schedules its user queues; `None` if unknown.
    pub scheduler: Option<Scheduler>,
    /// What says so, in sentences.
    pub evidence: Vec<String>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with that code.
    Code(i32),
    /// That signal killed it.
    Signal(i32),
    /// Not while it was recorded.
    Unknown,
}
