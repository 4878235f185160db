//! Facts as metrics: counters that only grow, with a bounded number of series.
//!
//! A queue has its own series while it exists and for [`KEPT_NS`] after its destruction. Then its counts move to the series with
//! `queue_id="ended"` of its GPU, so that sums stay right for ever. If there are [`MAX_QUEUES`] queues at once, further queues
//! are counted as `queue_id="other"`.

mod catalog;
mod docs;
mod families;
mod histogram;

use std::collections::{BTreeMap, HashMap};

pub use catalog::{CATALOG, Definition, Kind, LABELS};
pub use docs::markdown;
pub use families::{About, Family, Sample, Value};

use crate::tables::{Fact, Ioctl, Process, RingJob};
use crate::tally::{Entry, Tally, more};
use histogram::Buckets;

/// Greatest number of queues with their own series.
pub const MAX_QUEUES: usize = 1_000;
/// How long a queue keeps its series after its destruction, ns: enough for two scrapes at the slowest usual interval.
pub const KEPT_NS: u64 = 300_000_000_000;
/// Number of names (of rings, reasons, ioctls, sources of losses) that are distinguished; later names become `other`.
const MAX_NAMES: usize = 128;
/// Replaces names that are not distinguished.
const OTHER: &str = "other";

/// Counters of facts.
#[derive(Debug, Default)]
pub struct Metrics {
    queues: HashMap<u32, QueueTally>,
    /// The processes of queues with series, as long as those have them.
    processes: BTreeMap<u32, Process>,
    /// Counts of destroyed queues, by GPU.
    ended: BTreeMap<Option<u32>, Tally>,
    /// Counts of queues beyond the limit.
    other: Tally,
    rings: BTreeMap<(String, String, bool), u64>,
    ioctls: BTreeMap<String, (Buckets, u64)>,
    latency: Buckets,
    losses: BTreeMap<String, u64>,
    now_ns: u64,
}

/// A queue that has its own series.
#[derive(Debug, Default)]
struct QueueTally {
    tally: Tally,
    pid: Option<u32>,
    gpu_id: Option<u32>,
    queue_id: Option<u32>,
    kind: Option<String>,
    created_ns: Option<u64>,
    ended_ns: Option<u64>,
}

impl QueueTally {
    /// Returns whether it may take AQL packets, and whether it may take the commands of a copy engine: both, if its type is unknown.
    fn takes(&self) -> (bool, bool) {
        let kind = self.kind.as_deref();
        (
            kind.is_none_or(|kind| kind == "compute-aql"),
            kind.is_none_or(|kind| kind.starts_with("sdma")),
        )
    }
}

impl Metrics {
    /// Creates counters at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a fact.
    pub fn add(&mut self, fact: &Fact) {
        if let Some(entry) = Entry::of(fact) {
            self.now_ns = self.now_ns.max(entry.time_ns);
            self.tally(&entry).add(fact);
        }
        match fact {
            Fact::Doorbell(doorbell) => self.latency.add_known(doorbell.reserve_to_doorbell_ns),
            Fact::Ioctl(ioctl) => self.ioctl(ioctl),
            Fact::RingJob(job) => self.ring_job(job),
            Fact::Queue(queue) => {
                if let Some(known) = self.queue(queue.queue) {
                    known.pid = Some(queue.pid);
                    known.gpu_id = queue.gpu_id;
                    known.queue_id = queue.queue_id;
                    known.kind = Some(queue.kind.clone());
                    known.created_ns = Some(queue.created_ns);
                    known.ended_ns = queue.destroyed_ns;
                }
            }
            // Process ids are used again. The row of a process comes again until its end, so it may come before its queues.
            Fact::Process(process) if self.has_queue_of(process) => {
                self.processes.insert(process.pid, process.clone());
            }
            Fact::Loss(loss) => {
                let name = name(&self.losses, &loss.source);
                more(self.losses.entry(name).or_default(), loss.count);
            }
            _ => {}
        }
    }

    /// Advances the time: queues that were destroyed long ago lose their series.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let (now, ended) = (self.now_ns, &mut self.ended);
        self.queues.retain(|_, queue| {
            let keep = queue.ended_ns.is_none_or(|at| now.saturating_sub(at) < KEPT_NS);
            if !keep {
                ended.entry(queue.gpu_id).or_default().merge(&queue.tally);
            }
            keep
        });
        let queues = &self.queues;
        self.processes
            .retain(|&pid, _| queues.values().any(|queue| queue.pid == Some(pid)));
    }

    /// Returns whether a queue that this process can have created has series.
    fn has_queue_of(&self, process: &Process) -> bool {
        let is_its = |queue: &QueueTally| {
            queue.pid == Some(process.pid) && queue.created_ns.is_none_or(|created| created >= process.first_ns)
        };
        self.queues.values().any(is_its)
    }

    /// Returns the entry of the queue; `None` if it has no entry and there is no room for one.
    fn queue(&mut self, number: u32) -> Option<&mut QueueTally> {
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&number) && !self.make_room() {
            return None;
        }
        Some(self.queues.entry(number).or_default())
    }

    /// Removes the series of the queue that was destroyed first. Returns false if no queue was destroyed.
    fn make_room(&mut self) -> bool {
        let queues = self.queues.iter();
        let ended = queues.filter_map(|(&number, queue)| Some((queue.ended_ns?, number)));
        let first = ended.min().and_then(|(_, number)| self.queues.remove(&number));
        if let Some(queue) = &first {
            self.ended.entry(queue.gpu_id).or_default().merge(&queue.tally);
        }
        first.is_some()
    }

    fn tally(&mut self, entry: &Entry) -> &mut Tally {
        match entry.queue {
            // A fact that comes after the series of its queue were folded is counted approximately where the series went.
            Some(number) if self.queue(number).is_some() => {
                let queue = self.queues.entry(number).or_default();
                queue.pid.get_or_insert(entry.pid);
                &mut queue.tally
            }
            _ => &mut self.other,
        }
    }

    fn ioctl(&mut self, ioctl: &Ioctl) {
        self.now_ns = self.now_ns.max(ioctl.exit_ns);
        if ioctl.device != "kfd" {
            return;
        }
        let name = name(&self.ioctls, &ioctl.name);
        let (times, errors) = self.ioctls.entry(name).or_default();
        times.add_known(ioctl.duration_ns());
        *errors += u64::from(ioctl.failed());
    }

    fn ring_job(&mut self, job: &RingJob) {
        let reason = job.reason.as_deref().unwrap_or("");
        let traced = job.traced == Some(true);
        let mut key = (job.class.clone(), reason.to_owned(), traced);
        if self.rings.len() >= MAX_NAMES && !self.rings.contains_key(&key) {
            key = (OTHER.to_owned(), OTHER.to_owned(), traced);
        }
        *self.rings.entry(key).or_default() += 1;
    }
}

/// Returns the name under which to count.
fn name<V>(known: &BTreeMap<String, V>, name: &str) -> String {
    if known.len() >= MAX_NAMES && !known.contains_key(name) {
        OTHER.to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
