//! Everything that can be shown at one moment. Names and order are stable: `tracer top --once --json` prints it.

use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::known::ByPath;
use crate::tables::{CopiedBy, CopyOp, Direction, Path};
use crate::tally::Entry;

/// The state at one moment. Ages and durations are ns; `None` (`null`) is unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Time of the picture, CLOCK_MONOTONIC ns.
    pub time_ns: u64,
    /// Time since the first fact.
    pub elapsed_ns: Option<u64>,
    /// The sign by which a simulated GPU was recognized; `None` if the GPU is not known to be simulated.
    pub simulated: Option<String>,
    /// Whether this is everything: the capture has ended in order, and nothing of a trace is missing or cannot be read. False while
    /// it continues.
    pub complete: bool,
    /// What is watched. Numbers of everything else are `None`.
    pub watched: Capabilities,
    /// Tables of the trace with rows that cannot be read. Numbers that need them are `None`.
    pub unread_tables: Vec<String>,
    /// Counts of everything.
    pub totals: Totals,
    /// Queues, by number in the trace.
    pub queues: Vec<QueueRow>,
    /// Facts of queues beyond the limit.
    pub other_queues: u64,
    /// Kernels, the most dispatched first.
    pub kernels: Vec<KernelRow>,
    /// Dispatches of kernels beyond the limit, and of runs of several kernels.
    pub other_kernels: u64,
    /// Rings, by name and reason.
    pub rings: Vec<RingRow>,
    /// Ioctls, by device and name.
    pub ioctls: Vec<IoctlRow>,
    /// Functions of HIP, HSA and OpenCL that were called, the longest in sum first.
    pub api: Vec<ApiRow>,
    /// Copies and fills, those that moved the most bytes first.
    pub copies: Vec<CopyRow>,
    /// Processes, by id.
    pub processes: Vec<ProcessRow>,
    /// Sources that lost events.
    pub losses: Vec<Loss>,
}

/// Counts since the beginning, and rates in the last second; `None` if they cannot be known, as in [`crate::summary::Report`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Kernel dispatches.
    pub dispatches: Option<u64>,
    /// Dispatches that a trace stores only as runs.
    pub aggregated: Option<u64>,
    /// Submissions by path. It is unknown whether packets that bypassed every probe were dispatches; their number is that of the
    /// last samples.
    pub by_path: ByPath,
    /// Stores to AQL doorbells.
    pub doorbells: Option<u64>,
    /// SDMA submissions.
    pub copies: Option<u64>,
    /// Published packets that are not known dispatches, unread packets included.
    pub other_packets: Option<u64>,
    /// Published packets that were not read.
    pub unread: Option<u64>,
    /// Dispatches per second.
    pub dispatches_per_s: Option<f64>,
    /// Doorbells per second.
    pub doorbells_per_s: Option<f64>,
    /// Copies per second.
    pub copies_per_s: Option<f64>,
    /// Calls of functions of HIP, HSA and OpenCL; `None` if none was watched.
    pub api_calls: Option<u64>,
    /// Dispatches in each of the last complete seconds, the oldest first.
    pub history: Vec<u32>,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Number in the trace.
    pub queue: u32,
    /// Process.
    pub pid: Option<u32>,
    /// Name of the process's program, if known.
    pub comm: Option<String>,
    /// KFD gpu id.
    pub gpu_id: Option<u32>,
    /// Name of the GPU: `gfx1100`; `None` if unknown.
    pub gpu: Option<String>,
    /// The scheduler of the GPU's user queues: `mes`, `hws`, `nohws`; `None` if unknown.
    pub scheduler: Option<String>,
    /// KFD queue id.
    pub queue_id: Option<u32>,
    /// Kind of the queue: `compute-aql`, `sdma`, ...
    pub kind: Option<String>,
    /// Whether the runtime created it for itself, not for the program; `None` if unknown.
    pub internal: Option<bool>,
    /// Whether the queue was destroyed, or its process exited.
    pub ended: bool,
    /// Kernel dispatches.
    pub dispatches: Option<u64>,
    /// Doorbells of any kind.
    pub doorbells: Option<u64>,
    /// SDMA submissions.
    pub copies: Option<u64>,
    /// Published indexes whose packets are unread.
    pub unread: Option<u64>,
    /// Dispatches in the last second.
    pub dispatches_per_s: Option<f64>,
    /// Doorbells in the last second.
    pub doorbells_per_s: Option<f64>,
    /// Average since the beginning.
    pub packets_per_doorbell: Option<f64>,
    /// Write index, as last read.
    pub write_index: Option<u64>,
    /// Read index, as last read.
    pub read_index: Option<u64>,
    /// Time since the indexes were read.
    pub looked_age_ns: Option<u64>,
    /// Size of the ring, packets.
    pub ring_packets: Option<u64>,
    /// Packets that were published and not taken by the GPU, at the last sample.
    pub depth: Option<u64>,
    /// Age of the oldest doorbell whose packets were not all taken, at the last sample.
    pub oldest_age_ns: Option<u64>,
    /// Time since its last doorbell.
    pub last_doorbell_age_ns: Option<u64>,
    /// Time from the entry of the reserve to the doorbell: p50 and p99.
    pub latency_ns: Option<(u64, u64)>,
    /// Dispatches and copies by path.
    pub by_path: ByPath,
    /// Dispatches (or copies) in each of the last complete seconds, the oldest first.
    pub history: Vec<u32>,
    /// Set if packets wait and the GPU takes none.
    pub stuck: Option<Stuck>,
    /// The last packets, the oldest first.
    pub packets: Vec<PacketRow>,
    /// Doorbells whose packets were not all taken at the last sample: age, and one past the last published index.
    pub timeline: Vec<(u64, u64)>,
}

/// A queue that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Packets that wait.
    pub packets: u64,
    /// How long the read index has not moved while packets waited.
    pub for_ns: u64,
    /// The read index.
    pub read_index: u64,
    /// Age of the last doorbell.
    pub last_doorbell_ns: Option<u64>,
}

/// A packet, or a run of unread packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    /// Index in its queue.
    pub index: u64,
    /// Number of indexes that this row represents.
    pub count: u64,
    /// Time of the doorbell.
    pub time_ns: u64,
    /// Thread that rang the doorbell.
    pub tid: Option<u32>,
    /// Kind of the packet: `dispatch`, `barrier-and`, ...
    pub kind: String,
    /// Path of the submission.
    pub path: Path,
    /// Kernel object of a dispatch.
    pub kernel_object: Option<u64>,
    /// Grid size, work items.
    pub grid: Option<[u32; 3]>,
    /// Workgroup size, work items.
    pub workgroup: Option<[u16; 3]>,
}

impl PacketRow {
    /// Returns the row of packets of this kind, of which nothing else is known.
    pub(super) fn of(kind: &str, path: Path, entry: &Entry) -> Self {
        Self {
            index: 0,
            count: entry.count,
            time_ns: entry.time_ns,
            tid: None,
            kind: kind.to_owned(),
            path,
            kernel_object: None,
            grid: None,
            workgroup: None,
        }
    }
}

/// A kernel of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// Process.
    pub pid: u32,
    /// Name of the process's program, if known.
    pub comm: Option<String>,
    /// Address of its descriptor.
    pub kernel_object: u64,
    /// Its name, if known.
    pub name: Option<String>,
    /// Dispatches.
    pub count: u64,
    /// Dispatches in the last second.
    pub per_s: f64,
    /// Time since the last dispatch.
    pub last_age_ns: u64,
}

/// Finished jobs of one ring and reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingRow {
    /// Name of the ring.
    pub ring: String,
    /// Class of the ring: `gfx`, `comp`, `sdma`, ...
    pub class: String,
    /// Why the driver created the jobs for itself.
    pub reason: Option<String>,
    /// All jobs.
    pub jobs: u64,
    /// Jobs of traced processes.
    pub traced: u64,
    /// Jobs in the last second.
    pub per_s: f64,
    /// Time from submit to run: p50 and p99.
    pub waiting_ns: Option<(u64, u64)>,
    /// Time from run to done: p50 and p99.
    pub running_ns: Option<(u64, u64)>,
}

/// Calls of one ioctl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoctlRow {
    /// `kfd` or `drm`.
    pub device: String,
    /// Name of the ioctl.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Calls in the last second.
    pub per_s: f64,
    /// Calls that failed.
    pub errors: u64,
    /// Time in the call: p50 and p99.
    pub ns: Option<(u64, u64)>,
}

/// Calls of one function of HIP, HSA or OpenCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApiRow {
    /// `hip`, `hsa` or `opencl`.
    pub layer: String,
    /// Exported name of the function.
    pub function: String,
    /// Calls. Open calls are among them only if the function's calls are only counted.
    pub count: u64,
    /// Calls that ended in the last second; `None` if only the sum of a whole trace is known.
    pub per_s: Option<f64>,
    /// Calls that returned an error.
    pub errors: u64,
    /// Calls whose return was not seen: they have neither a result nor a time.
    pub unreturned: u64,
    /// Sum of the times in the calls; `None` if no call returned.
    pub total_ns: Option<u64>,
    /// Average time in a call.
    pub mean_ns: Option<u64>,
    /// Time in a call: p50 and p99. Of calls that were only counted, they are at most 12.5 % too high.
    pub ns: Option<(u64, u64)>,
}

/// Copies and fills of one kind: SDMA submissions, or dispatches of kernels that copy or fill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyRow {
    /// Effect of the commands: `copy`, `copy-rect`, `fill`, `mixed` or `none` (waits, padding); `None` if unknown.
    pub op: Option<CopyOp>,
    /// Direction: `h2d`, `d2h`, `d2d` or `h2h`; `None` if unknown.
    pub direction: Option<Direction>,
    /// What moves the bytes: `sdma` or `kernel`. A kernel is a dispatch, too: `totals.copies` does not contain it.
    pub by: Option<CopiedBy>,
    /// SDMA engine that the process chose; `None` if the driver chose.
    pub engine: Option<u32>,
    /// Path of the submissions.
    pub path: Path,
    /// Submissions.
    pub count: u64,
    /// Submissions in the last second.
    pub per_s: f64,
    /// Bytes of the submissions whose size is known; `None` if there are none.
    pub bytes: Option<u64>,
    /// These bytes in the last second.
    pub bytes_per_s: Option<f64>,
    /// Submissions of unknown size.
    pub unknown: u64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// Parent process, if its fork was seen.
    pub parent: Option<u32>,
    /// Name of its program.
    pub comm: Option<String>,
    /// Its systemd unit, if it uses the KFD and the path of its cgroup names one.
    #[serde(default)]
    pub unit: Option<String>,
    /// The id of its container, if the path names one.
    #[serde(default)]
    pub container: Option<String>,
    /// The UID of its Kubernetes pod, if the path names one.
    #[serde(default)]
    pub pod: Option<String>,
    /// Whether the process exited.
    pub ended: bool,
    /// Number of its queues.
    pub queues: usize,
    /// Kernel dispatches.
    pub dispatches: Option<u64>,
    /// Dispatches in the last second.
    pub dispatches_per_s: Option<f64>,
    /// Stores to AQL doorbells.
    pub doorbells: Option<u64>,
    /// SDMA submissions.
    pub copies: Option<u64>,
    /// Ioctls on KFD and DRM devices.
    pub ioctls: Option<u64>,
}

/// Events that a source lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Name of the source.
    pub source: String,
    /// Number of events.
    pub count: u64,
}
