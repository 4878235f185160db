//! The current activity: takes facts and returns a [`Picture`], for a screen, a web page or a script.
//!
//! The state is pure. Only facts and [`Live::advance`] set the time, so that a stored trace replays as it was seen. The state is
//! bounded: everything that a traced process can invent (kernels, queues, names) has a limit, and what is beyond the limit is
//! counted as `other`.

mod kernels;
mod picture;
mod queue;
mod rate;
mod tables;

use std::collections::BTreeMap;

pub use picture::{IoctlRow, KernelRow, Loss, PacketRow, Picture, ProcessRow, QueueRow, RingRow, Share, Stuck, Totals};
pub use rate::{HISTORY, Rate};

use crate::fact::{Fact, Path};
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
    dispatches: [u64; Path::ALL.len()],
    /// Dispatches that are recorded only as runs.
    aggregated: u64,
    doorbells: u64,
    copies: u64,
    packets: u64,
    unread: u64,
    /// Packets that bypassed every probe: their kind is unknown.
    unseen: u64,
    dispatch_rate: Rate,
    doorbell_rate: Rate,
    copy_rate: Rate,
}

impl Live {
    /// Creates a state without facts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a fact. Snapshots of queues and processes that still exist may come any number of times.
    pub fn apply(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) => {
                self.seen(dispatch.time_ns);
                self.dispatches[dispatch.path as usize] += 1;
                self.dispatch_rate.add(dispatch.time_ns, 1);
                self.kernels.add(dispatch);
                self.processes.at(dispatch.pid).dispatches.add(dispatch.time_ns, 1);
                if let Some(queue) = self.queue(dispatch.queue) {
                    queue.dispatch(dispatch);
                }
            }
            Fact::DispatchRun(run) => {
                self.seen(run.end_ns);
                let sum = &mut self.dispatches[run.path as usize];
                *sum = sum.saturating_add(run.count);
                self.aggregated = self.aggregated.saturating_add(run.count);
                self.dispatch_rate.add(run.end_ns, run.count);
                self.kernels.add_run(run);
                self.processes.at(run.pid).dispatches.add(run.end_ns, run.count);
                if let Some(queue) = self.queue(run.queue) {
                    queue.dispatch_run(run);
                }
            }
            Fact::Packet(packet) => {
                self.seen(packet.time_ns);
                self.packets = self.packets.saturating_add(packet.count);
                if packet.unread.is_some() {
                    self.unread = self.unread.saturating_add(packet.count);
                }
                if packet.path == Path::Unseen {
                    self.unseen = self.unseen.saturating_add(packet.count);
                }
                if let Some(queue) = self.queue(packet.queue) {
                    queue.packet(packet);
                }
            }
            Fact::Doorbell(doorbell) => {
                self.seen(doorbell.time_ns);
                self.doorbells += 1;
                self.doorbell_rate.add(doorbell.time_ns, 1);
                self.processes.at(doorbell.pid).doorbells.add(doorbell.time_ns, 1);
                if let Some(queue) = doorbell.queue.and_then(|number| self.queue(number)) {
                    queue.doorbell(doorbell);
                }
            }
            Fact::DoorbellRun(run) => {
                self.seen(run.end_ns);
                self.doorbells = self.doorbells.saturating_add(run.count);
                self.doorbell_rate.add(run.end_ns, run.count);
                self.processes.at(run.pid).doorbells.add(run.end_ns, run.count);
                if let Some(queue) = run.queue.and_then(|number| self.queue(number)) {
                    queue.doorbell_run(run);
                }
            }
            Fact::Copy(copy) => {
                self.seen(copy.time_ns);
                self.copies += 1;
                self.copy_rate.add(copy.time_ns, 1);
                self.processes.at(copy.pid).copies.add(copy.time_ns, 1);
                if let Some(queue) = copy.queue.and_then(|number| self.queue(number)) {
                    queue.copy(copy);
                }
            }
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
            Fact::Loss(loss) => {
                let sum = self.losses.entry(loss.source.clone()).or_default();
                *sum = sum.saturating_add(loss.count);
            }
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
        self.queues.values_mut().for_each(|queue| queue.advance(now));
        self.queues.retain(|_, queue| {
            queue
                .ended_ns(now)
                .is_none_or(|ended| now.saturating_sub(ended) < SHOWN_AFTER_END_NS)
        });
        self.processes.forget(now, SHOWN_AFTER_END_NS);
    }

    /// Returns everything that can be shown, at the latest time that is known.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let now = self.now_ns;
        let per_queue = |pid| self.queues.values().filter(|queue| queue.pid() == Some(pid)).count();
        Picture {
            time_ns: now,
            elapsed_ns: self.began_ns.map(|began| now.saturating_sub(began)),
            totals: Totals {
                dispatches: self.dispatches.iter().sum(),
                by_path: self.by_path(),
                aggregated: self.aggregated,
                doorbells: self.doorbells,
                copies: self.copies,
                other_packets: self.packets,
                unread: self.unread,
                dispatches_per_s: self.dispatch_rate.per_second(now),
                doorbells_per_s: self.doorbell_rate.per_second(now),
                copies_per_s: self.copy_rate.per_second(now),
                history: self.dispatch_rate.history(now),
            },
            queues: self.queues.values().map(|queue| self.row(queue, now)).collect(),
            other_queues: self.other_queues,
            kernels: self.kernels.rows(now),
            other_kernels: self.kernels.others(),
            rings: self.rings.rows(now),
            ioctls: self.ioctls.rows(now),
            processes: self.processes.rows(now, &per_queue),
            losses: self
                .losses
                .iter()
                .map(|(source, &count)| Loss {
                    source: source.clone(),
                    count,
                })
                .collect(),
        }
    }

    fn row(&self, queue: &LiveQueue, now: u64) -> QueueRow {
        let mut row = queue.row(now);
        if let Some(gpu) = row.gpu_id.and_then(|id| self.gpus.get(&id)) {
            row.gpu = Some(gpu.name.clone());
            row.scheduler.clone_from(&gpu.scheduler);
        }
        row
    }

    fn by_path(&self) -> Share {
        let mut share = Share::of(&self.dispatches);
        share.unseen = share.unseen.saturating_add(self.unseen);
        share
    }

    fn seen(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
        self.began_ns.get_or_insert(time_ns);
    }

    /// Returns the queue with this number. Keeps it from now on, if there is room.
    fn queue(&mut self, number: u32) -> Option<&mut LiveQueue> {
        if !self.queues.contains_key(&number) && self.queues.len() >= MAX_QUEUES {
            self.other_queues += 1;
            return None;
        }
        Some(self.queues.entry(number).or_insert_with(|| LiveQueue::new(number)))
    }
}

/// Returns the time at which a fact comes in a replay; `None` for facts that have no time of their own, such as snapshots of
/// queues and processes.
#[must_use]
pub fn time_of(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Dispatch(dispatch) => Some(dispatch.time_ns),
        Fact::DispatchRun(run) => Some(run.end_ns),
        Fact::DoorbellRun(run) => Some(run.end_ns),
        Fact::Packet(packet) => Some(packet.time_ns),
        Fact::Doorbell(doorbell) => Some(doorbell.time_ns),
        Fact::Copy(copy) => Some(copy.time_ns),
        Fact::Progress(progress) => Some(progress.until_ns),
        Fact::Ioctl(ioctl) => Some(ioctl.exit_ns),
        Fact::RingJob(job) => Some(job.done_ns.or(job.run_ns).unwrap_or(job.time_ns)),
        Fact::Loss(loss) => Some(loss.time_ns),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
