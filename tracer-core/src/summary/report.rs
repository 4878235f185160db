//! What a summary says, in the form that is written: names and order are stable, and `null` means unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ApiCalls, Copies, DriverCalls, DriverEvents, Kernel, Requested, RingJobs, Stats, StreamQueue};
use crate::fact::{Process, Queue};

/// The counts of a trace. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the trace was written to its end; set by who knows it.
    pub complete: bool,
    /// Kernel dispatches.
    pub dispatches: Dispatches,
    /// Stores to AQL doorbells.
    pub doorbells: Doorbells,
    /// Published packets that are no known kernel dispatches.
    pub packets: Packets,
    /// Packets that the GPU took although no doorbell that was seen had published them.
    pub unseen: UnseenPackets,
    /// What programs submitted to proxies, where a tool stands in between.
    pub requested: Requested,
    /// SDMA submissions.
    pub copies: Copies,
    /// The queues.
    pub queues: Vec<Queue>,
    /// Queues beyond those that are listed; their numbers are in the totals. 0 in a report of a trace on disk.
    pub other_queues: u64,
    /// Queues whose commands nobody reads (PM4).
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
    /// Calls of functions of HIP and HSA.
    pub api_calls: ApiCalls,
    /// Queues that the work of HIP's streams was seen on.
    pub streams: Vec<StreamQueue>,
    /// Kernels, the most dispatched first.
    pub kernels: Vec<Kernel>,
    /// Dispatches of kernels beyond the number that is kept apart, and those in runs of several kernels.
    pub other_kernels: u64,
    /// Events that sources dropped.
    pub losses: Losses,
    /// The processes.
    pub processes: Vec<Process>,
    /// Processes beyond those that are listed, likewise.
    pub other_processes: u64,
}

/// Submissions by the way that they took; `None` where that way was not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPath {
    /// A store to a doorbell.
    pub doorbell: Option<u64>,
    /// A job on a ring of the kernel driver.
    pub ring: Option<u64>,
    /// hsaKmtQueueRingDoorbell.
    pub thunk: Option<u64>,
    /// Seen to be published, but not how.
    pub unseen: Option<u64>,
}

/// Kernel dispatches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatches {
    /// All of them; `None` if packets were not read, or there were queues of commands that can't be (PM4).
    pub total: Option<u64>,
    /// Those of them that are in runs only (`dispatch_runs`), because the disk did not keep up.
    pub aggregated: Option<u64>,
    /// By the way that they took.
    pub by_path: ByPath,
    /// By what their kind rests on.
    pub by_evidence: ByEvidence,
    /// Those on queues that runtimes made for themselves; `None` if that is not known of every queue that has any.
    pub internal: Option<u64>,
}

/// Dispatches by what their kind rests on; `None` if not all packets were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByEvidence {
    /// A valid header.
    pub header: Option<u64>,
    /// The body of a consumed packet.
    pub body: Option<u64>,
}

/// Stores to AQL doorbells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doorbells {
    /// All of them; `None` if they were not watched.
    pub total: Option<u64>,
    /// Those of them that are in runs only (`doorbell_runs`), because the disk did not keep up.
    pub aggregated: Option<u64>,
    /// From the entry of the reserve to the doorbell, of doorbells that have rows; `None` if reserves were not watched, or none
    /// was matched.
    pub reserve_to_doorbell_ns: Option<Stats>,
}

/// Published packets that are no known kernel dispatches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// All of them, unread ones included; `None` if not all packets were read.
    pub total: Option<u64>,
    /// By kind; kinds that did not occur are left out.
    pub by_kind: BTreeMap<String, u64>,
    /// The unread ones, by reason.
    pub unread: BTreeMap<String, u64>,
}

/// Packets that the GPU took although no doorbell that was seen had published them, dispatches or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenPackets {
    /// All of them; `None` if nobody looked for them, or not at every compute queue to its end.
    pub total: Option<u64>,
    /// Those that were found.
    pub found: u64,
    /// Compute queues of which nobody can say that all were found: all of PM4 among them.
    pub queues_open: u64,
}

impl UnseenPackets {
    /// From the rows that were `found`, and the queues that are open. `watched`: whether anybody looked.
    pub(super) fn of(queues_open: u64, found: u64, watched: bool) -> Self {
        Self {
            total: (watched && queues_open == 0).then_some(found),
            found,
            queues_open,
        }
    }
}

/// Ioctls on KFD and DRM devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ioctls {
    /// All of them; `None` if they were not watched.
    pub total: Option<u64>,
    /// By name; unknown numbers of DRM devices are `drm-nr-0x..`, of the KFD `nr-0x..`.
    pub by_name: BTreeMap<String, IoctlCalls>,
}

/// Ioctls of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoctlCalls {
    /// Calls.
    pub count: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in the call; `None` if none returned.
    pub ns: Option<Stats>,
}

/// Events that sources dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// All of them.
    pub total: u64,
    /// By source; sources that dropped nothing are left out.
    pub by_source: BTreeMap<String, u64>,
}
