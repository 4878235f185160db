//! The current activity: takes facts and returns a [`Picture`], for a screen, a web page or a script.
//!
//! The state is pure. Only facts and [`Live::advance`] set the time, so that a stored trace replays as it was seen. The state is
//! bounded: everything that a traced process can invent (kernels, queues, names) has a limit, and what is beyond the limit is
//! counted as `other`.

mod counts;
mod kernels;
mod picture;
mod queue;
mod rate;
mod tables;

use std::collections::BTreeMap;

pub use picture::{IoctlRow, KernelRow, Loss, PacketRow, Picture, ProcessRow, QueueRow, RingRow, Share, Stuck, Totals};

use crate::tables::Fact;
use crate::tally::{Entry, bounded, more};
use counts::Counts;
use kernels::Kernels;
use queue::LiveQueue;
use tables::{Ioctls, Processes, Rings};

/// Greatest number of queues that are shown. Facts of other queues count only in the totals.
pub const MAX_QUEUES: usize = 16_384;
/// How long a destroyed queue or an exited process is still shown, ns.
const SHOWN_AFTER_END_NS: u64 = 5_000_000_000;

/// A GPU. Facts do not describe GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// Name of the GPU: `gfx1100`.
    pub name: String,
    /// The scheduler of its user queues: `mes`, `hws`, `nohws`; `None` if unknown.
    pub scheduler: Option<String>,
}

/// The state of the view.
#[derive(Debug, Default)]
pub struct Live {
    now_ns: u64,
    began_ns: Option<u64>,
    queues: BTreeMap<u32, LiveQueue>,
    /// Facts of queues that were not kept, because there were [`MAX_QUEUES`].
    other_queues: u64,
    kernels: Kernels,
    rings: Rings,
    ioctls: Ioctls,
    processes: Processes,
    gpus: BTreeMap<u32, Gpu>,
    losses: BTreeMap<String, u64>,
    counts: Counts,
}

impl Live {
    /// Creates a state without facts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a fact. Snapshots of queues and processes that still exist may come any number of times.
    pub fn apply(&mut self, fact: &Fact) {
        if let Some(entry) = Entry::of(fact) {
            self.seen(entry.time_ns);
            self.counts.add(fact, &entry);
            self.kernels.add(fact, &entry);
            self.processes.at(entry.pid).counts.add(fact, &entry);
            if let Some(queue) = entry.queue.and_then(|number| self.queue(number)) {
                queue.add(fact, &entry);
            }
        }
        match fact {
            Fact::Progress(progress) => {
                self.seen(progress.until_ns);
                if let Some(queue) = self.queue(progress.queue) {
                    queue.progress(progress);
                }
            }
            Fact::Ioctl(ioctl) => {
                self.seen(ioctl.exit_ns);
                self.processes.at(ioctl.pid).ioctls += 1;
                self.ioctls.add(ioctl);
            }
            Fact::RingJob(job) => self.rings.add(job),
            Fact::Queue(queue) => {
                if let Some(live) = self.queue(queue.queue) {
                    live.numbers(queue);
                }
            }
            Fact::Process(process) => self.processes.numbers(process),
            Fact::Loss(loss) => more(self.losses.entry(loss.source.clone()).or_default(), loss.count),
            _ => {}
        }
    }

    /// Sets the GPUs by their KFD ids, as they are known so far.
    pub fn set_gpus(&mut self, gpus: BTreeMap<u32, Gpu>) {
        self.gpus = gpus;
    }

    /// Advances the time: rates fall, and destroyed queues and exited processes disappear. The time never goes back.
    pub fn advance(&mut self, now_ns: u64) {
        self.seen(now_ns);
        let now = self.now_ns;
        self.queues.retain(|_, queue| {
            queue.advance(now);
            let ended = queue.ended_ns(now);
            ended.is_none_or(|ended| now.saturating_sub(ended) < SHOWN_AFTER_END_NS)
        });
        self.processes.forget(now, SHOWN_AFTER_END_NS);
    }

    /// Returns everything that can be shown, at the latest time that is known.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let (now, tally) = (self.now_ns, &self.counts.tally);
        let of_process = |pid| self.queues.values().filter(|queue| queue.pid == Some(pid)).count();
        let queues = self.queues.iter();
        let losses = self.losses.iter();
        Picture {
            time_ns: now,
            elapsed_ns: self.began_ns.map(|began| now.saturating_sub(began)),
            totals: Totals {
                dispatches: tally.all_dispatches(),
                by_path: Share::of(&tally.dispatches, tally),
                aggregated: tally.aggregated.dispatches,
                doorbells: tally.doorbells,
                copies: tally.all_copies(),
                other_packets: tally.other_packets.saturating_add(tally.unread),
                unread: tally.unread,
                dispatches_per_s: self.counts.dispatches.per_second(now),
                doorbells_per_s: self.counts.doorbells.per_second(now),
                copies_per_s: self.counts.copies.per_second(now),
                history: self.counts.dispatches.history(now),
            },
            queues: queues
                .map(|(&number, queue)| queue.row(number, &self.gpus, now))
                .collect(),
            other_queues: self.other_queues,
            kernels: self.kernels.rows(now),
            other_kernels: self.kernels.others,
            rings: self.rings.rows(now),
            ioctls: self.ioctls.rows(now),
            processes: self.processes.rows(now, &of_process),
            losses: losses
                .map(|(source, &count)| Loss {
                    source: source.clone(),
                    count,
                })
                .collect(),
        }
    }

    fn seen(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
        self.began_ns.get_or_insert(time_ns);
    }

    /// Returns the queue with this number. Keeps it from now on, if there is room.
    fn queue(&mut self, number: u32) -> Option<&mut LiveQueue> {
        let queue = bounded(&mut self.queues, &number, MAX_QUEUES);
        self.other_queues += u64::from(queue.is_none());
        queue
    }
}

/// Returns the time at which a fact comes in a replay; `None` for facts that have no time of their own, such as snapshots of
/// queues and processes.
#[must_use]
pub fn time_of(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Progress(progress) => Some(progress.until_ns),
        Fact::Ioctl(ioctl) => Some(ioctl.exit_ns),
        Fact::RingJob(job) => Some(job.done_ns.or(job.run_ns).unwrap_or(job.time_ns)),
        Fact::Loss(loss) => Some(loss.time_ns),
        _ => Entry::of(fact).map(|entry| entry.time_ns),
    }
}

#[cfg(test)]
mod tests;
