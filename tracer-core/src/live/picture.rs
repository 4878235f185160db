//! What can be shown at one moment. Names and order are stable: `tracer top --once --json` prints it.

use serde::{Deserialize, Serialize};

use crate::fact::Path;

/// One moment. Ages and durations are ns; `None` (`null`) is unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    /// Since the first fact.
    pub elapsed_ns: Option<u64>,
    /// Of everything.
    pub totals: Totals,
    /// By number in the trace.
    pub queues: Vec<QueueRow>,
    /// Facts of queues beyond those that are kept.
    pub other_queues: u64,
    /// The most dispatched first.
    pub kernels: Vec<KernelRow>,
    /// Dispatches of kernels beyond those that are kept, and of runs of several kernels.
    pub other_kernels: u64,
    /// By name and reason.
    pub rings: Vec<RingRow>,
    /// By device and name.
    pub ioctls: Vec<IoctlRow>,
    /// By id.
    pub processes: Vec<ProcessRow>,
    /// Sources that lost events.
    pub losses: Vec<Loss>,
}

/// Counts since the beginning, and rates over the last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Kernel dispatches.
    pub dispatches: u64,
    /// Those of them that a trace holds in runs only.
    pub aggregated: u64,
    /// By the way that they took; of what went past every probe it is not known whether it was a dispatch.
    pub by_path: Share,
    /// Stores to AQL doorbells.
    pub doorbells: u64,
    /// SDMA submissions.
    pub copies: u64,
    /// Published packets that are no known dispatches, unread ones included.
    pub other_packets: u64,
    /// Those whose packets were not read.
    pub unread: u64,
    /// Dispatches a second.
    pub dispatches_per_s: f64,
    /// Doorbells a second.
    pub doorbells_per_s: f64,
    /// Copies a second.
    pub copies_per_s: f64,
    /// Dispatches in each of the last complete seconds, the oldest first.
    pub history: Vec<u32>,
}

/// Submissions by path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Stores to a doorbell.
    pub doorbell: u64,
    /// Jobs on a ring of the kernel driver.
    pub ring: u64,
    /// hsaKmtQueueRingDoorbell.
    pub thunk: u64,
    /// Past every probe.
    pub unseen: u64,
}

impl Share {
    pub(super) fn of(counts: &[u64; Path::ALL.len()]) -> Self {
        Self {
            doorbell: counts[Path::Doorbell as usize],
            ring: counts[Path::Ring as usize],
            thunk: counts[Path::Thunk as usize],
            unseen: counts[Path::Unseen as usize],
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.doorbell + self.ring + self.thunk + self.unseen
    }
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Number in the trace.
    pub queue: u32,
    /// Process.
    pub pid: Option<u32>,
    /// KFD gpu id.
    pub gpu_id: Option<u32>,
    /// What that GPU is called, `gfx1100`; `None` if not known.
    pub gpu: Option<String>,
    /// What schedules its user queues: `mes`, `hws`, `nohws`; `None` if not known.
    pub scheduler: Option<String>,
    /// KFD queue id.
    pub queue_id: Option<u32>,
    /// `compute-aql`, `sdma`, ...
    pub kind: Option<String>,
    /// Whether the runtime made it for itself, not the program; `None` if not known.
    pub internal: Option<bool>,
    /// It was destroyed, or its process ended.
    pub ended: bool,
    /// Kernel dispatches.
    pub dispatches: u64,
    /// Doorbells, of whatever kind.
    pub doorbells: u64,
    /// SDMA submissions.
    pub copies: u64,
    /// Published indexes whose packets are unread.
    pub unread: u64,
    /// Dispatches in the last second.
    pub dispatches_per_s: f64,
    /// Doorbells in the last second.
    pub doorbells_per_s: f64,
    /// On the average, since the beginning.
    pub packets_per_doorbell: Option<f64>,
    /// As last read.
    pub write_index: Option<u64>,
    /// As last read.
    pub read_index: Option<u64>,
    /// How long ago the indexes were read.
    pub looked_age_ns: Option<u64>,
    /// Size of the ring, packets.
    pub ring_packets: Option<u64>,
    /// Published and not taken by the GPU, when last looked.
    pub depth: Option<u64>,
    /// Age of the oldest doorbell whose packets were not all taken, when last looked.
    pub oldest_age_ns: Option<u64>,
    /// Since its last doorbell.
    pub last_doorbell_age_ns: Option<u64>,
    /// Entry of the reserve to the doorbell: p50 and p99.
    pub latency_ns: Option<(u64, u64)>,
    /// Dispatches and copies by path.
    pub by_path: Share,
    /// Dispatches (copies) in each of the last complete seconds, the oldest first.
    pub history: Vec<u32>,
    /// Packets wait and none is taken.
    pub stuck: Option<Stuck>,
    /// The last packets, the oldest first.
    pub packets: Vec<PacketRow>,
    /// Doorbells whose packets were not all taken when last looked: age, and one past the last index published.
    pub timeline: Vec<(u64, u64)>,
}

/// A queue that does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Packets that wait.
    pub packets: u64,
    /// For how long the read index has not moved while they did.
    pub for_ns: u64,
    /// Where it stands.
    pub read_index: u64,
    /// Age of the last doorbell.
    pub last_doorbell_ns: Option<u64>,
}

/// A packet, or a run of unread ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// Index in its queue.
    pub index: u64,
    /// How many indexes this stands for.
    pub count: u64,
    /// Of the doorbell.
    pub time_ns: u64,
    /// Thread that rang it.
    pub tid: Option<u32>,
    /// `dispatch`, `barrier-and`, ...
    pub kind: String,
    /// The way it took.
    pub path: Path,
    /// Of a dispatch.
    pub kernel_object: Option<u64>,
    /// Work items.
    pub grid: Option<[u32; 3]>,
    /// Work items.
    pub workgroup: Option<[u16; 3]>,
}

/// A kernel of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// Process.
    pub pid: u32,
    /// Address of its descriptor.
    pub kernel_object: u64,
    /// Its name, where known.
    pub name: Option<String>,
    /// Dispatches.
    pub count: u64,
    /// Dispatches in the last second.
    pub per_s: f64,
    /// Since the last.
    pub last_age_ns: u64,
}

/// Jobs of one ring and reason, as they ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingRow {
    /// Name.
    pub ring: String,
    /// `gfx`, `comp`, `sdma`, ...
    pub class: String,
    /// Why the driver made them for itself.
    pub reason: Option<String>,
    /// All.
    pub jobs: u64,
    /// Of traced processes.
    pub traced: u64,
    /// In the last second.
    pub per_s: f64,
    /// Submit to run: p50 and p99.
    pub waiting_ns: Option<(u64, u64)>,
    /// Run to done: p50 and p99.
    pub running_ns: Option<(u64, u64)>,
}

/// Calls of one ioctl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoctlRow {
    /// `kfd` or `drm`.
    pub device: String,
    /// Name.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// In the last second.
    pub per_s: f64,
    /// Calls that failed.
    pub errors: u64,
    /// In the call: p50 and p99.
    pub ns: Option<(u64, u64)>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Id.
    pub pid: u32,
    /// Parent, if its fork was seen.
    pub parent: Option<u32>,
    /// Name of its program.
    pub comm: Option<String>,
    /// It exited.
    pub ended: bool,
    /// Its queues.
    pub queues: usize,
    /// Kernel dispatches.
    pub dispatches: u64,
    /// In the last second.
    pub dispatches_per_s: f64,
    /// Stores to AQL doorbells.
    pub doorbells: u64,
    /// SDMA submissions.
    pub copies: u64,
    /// Ioctls on KFD and DRM devices.
    pub ioctls: u64,
}

/// Events lost by a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Name.
    pub source: String,
    /// Events.
    pub count: u64,
}
