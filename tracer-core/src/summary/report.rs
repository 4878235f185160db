//! The report of a summary, in the form that is written. Names and order are stable, and `null` means unknown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiCalls, Copies, DriverCalls, DriverEvents, Kernel, Requested, RingJobs, StreamQueue};
use crate::known::ByPath;
use crate::tables::{self, Process, Queue};
use crate::tally::Stats;

/// The counts of a trace. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Whether the trace was written to its end, and all of it can be read.
    pub complete: bool,
    /// What the traced processes did not do, if it is known that they submitted nothing; `None` otherwise.
    pub nothing: Option<Nothing>,
    /// Kernel dispatches.
    pub dispatches: Dispatches,
    /// Stores to AQL doorbells.
    pub doorbells: Doorbells,
    /// Published packets that are not known kernel dispatches.
    pub packets: Packets,
    /// Packets that the GPU took although no doorbell that was seen published them.
    pub unseen: UnseenPackets,
    /// Submissions of programs to proxies, if a tool is in between.
    pub requested: Requested,
    /// SDMA submissions.
    pub copies: Copies,
    /// The queues.
    pub queues: Vec<Queue>,
    /// Queues beyond those that are listed; the totals include their numbers. 0 in a report of a trace on disk.
    pub other_queues: u64,
    /// Queues whose commands tracer does not read (PM4).
    pub opaque_queues: u64,
    /// Ioctls on KFD and DRM devices.
    pub ioctls: Ioctls,
    /// Jobs on rings of the kernel driver.
    pub ring_jobs: RingJobs,
    /// Calls of functions of the kernel driver.
    pub driver_calls: DriverCalls,
    /// Trace events of the kernel driver itself.
    pub driver_events: DriverEvents,
    /// Code objects that were loaded or found; `None` if they were not watched.
    pub code_objects: Option<u64>,
    /// The names of the kernels in them; `None` if they were not watched.
    pub kernel_names: Option<KernelNames>,
    /// Calls of functions of HIP, HSA and OpenCL.
    pub api_calls: ApiCalls,
    /// Queues on which work of HIP streams was seen.
    pub streams: Vec<StreamQueue>,
    /// Kernels, the most dispatched first.
    pub kernels: Vec<Kernel>,
    /// Dispatches of kernels beyond the limit, and dispatches in runs of several kernels.
    pub other_kernels: u64,
    /// Events that sources dropped.
    pub losses: Losses,
    /// The processes.
    pub processes: Vec<Process>,
    /// Processes beyond those that are listed; the totals include their numbers. 0 in a report of a trace on disk.
    pub other_processes: u64,
}

/// Names of the kernels in code objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelNames {
    /// Kernels.
    pub total: u64,
    /// Kernels whose names tracer could not demangle, and reports as they are in the code object.
    pub mangled: u64,
}

impl KernelNames {
    /// Counts a kernel.
    pub(super) fn add(&mut self, kernel: &tables::Kernel) {
        self.total += 1;
        let is_mangled = kernel.symbol.starts_with("_Z") || kernel.symbol.starts_with("_R");
        self.mangled += u64::from(is_mangled && kernel.name == kernel.symbol);
    }
}

/// How far processes got that submitted nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nothing {
    /// No process made an ioctl of /dev/kfd. Without one, there is no queue.
    NoKfd,
    /// Processes made ioctls of /dev/kfd, and created no queue.
    NoQueue,
    /// Processes had queues, and submitted nothing to them.
    NoSubmission,
}

/// Kernel dispatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dispatches {
    /// All dispatches; `None` if packets were not read, if there were queues whose commands cannot be read (PM4), or vendor packets
    /// of a format that this version does not know, or if parts of the trace cannot be read.
    pub total: Option<u64>,
    /// Dispatches that are recorded only as runs (`dispatch_runs`), because the disk did not keep up.
    pub aggregated: Option<u64>,
    /// Dispatches by path.
    pub by_path: ByPath,
    /// Dispatches by the evidence for their kind.
    pub by_evidence: ByEvidence,
    /// Dispatches on queues that runtimes created for themselves; `None` if that is unknown for any queue with dispatches, or if
    /// the recorder did not finish.
    pub internal: Option<u64>,
}

/// Dispatches by the evidence for their kind; `None` if not all packets were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByEvidence {
    /// A valid header.
    pub header: Option<u64>,
    /// The body of a consumed packet.
    pub body: Option<u64>,
    /// A line in the runtime's log.
    pub log: Option<u64>,
}

/// Stores to AQL doorbells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doorbells {
    /// All doorbells; `None` if they were not watched.
    pub total: Option<u64>,
    /// Doorbells that are recorded only as runs (`doorbell_runs`), because the disk did not keep up.
    pub aggregated: Option<u64>,
    /// Time from the entry of the reserve to the doorbell, for doorbells that have rows; `None` if reserves were not watched, or
    /// if none was matched.
    pub reserve_to_doorbell_ns: Option<Stats>,
}

/// Published packets that are not known kernel dispatches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Packets {
    /// All packets, unread packets included; `None` if not all packets were read.
    pub total: Option<u64>,
    /// Packets by kind; kinds that did not occur are omitted.
    pub by_kind: BTreeMap<String, u64>,
    /// Unread packets, by reason.
    pub unread: BTreeMap<String, u64>,
}

/// Packets that the GPU took although no doorbell that was seen published them, dispatches or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnseenPackets {
    /// All packets; `None` if tracer did not watch for them, not at every compute queue to its destruction, or
    /// if the recorder did not finish.
    pub total: Option<u64>,
    /// Packets that were found.
    pub found: u64,
    /// Compute queues of which it is unknown whether all packets were found. All PM4 queues are among them.
    pub queues_open: u64,
}

/// Ioctls on KFD and DRM devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ioctls {
    /// All ioctls; `None` if they were not watched.
    pub total: Option<u64>,
    /// Ioctls by name; unknown numbers of DRM devices are `drm-nr-0x..`, of the KFD `nr-0x..`.
    pub by_name: BTreeMap<String, IoctlCalls>,
}

/// Ioctls of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoctlCalls {
    /// Calls.
    pub count: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in the call; `None` if no call returned.
    pub ns: Option<Stats>,
}

/// Events that sources dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// All dropped events; `None` if the table of losses cannot be read.
    pub total: Option<u64>,
    /// Dropped events by source; sources that dropped nothing are omitted.
    pub by_source: BTreeMap<String, u64>,
}
