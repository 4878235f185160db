//! The current activity: takes facts and returns a [`Picture`], for a screen, a web page or a script.
//!
//! The state is pure. Only facts and [`Live::advance`] set the time, so that a stored trace replays as it was seen. The state is
//! bounded: everything that a traced process can invent (kernels, queues, names) has a limit, and what is beyond the limit is
//! counted as `other`.

mod api;
mod copies;
mod counts;
mod kernels;
mod picture;
mod queue;
mod rate;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

pub use picture::{
    ApiRow, CopyRow, IoctlRow, KernelRow, Loss, PacketRow, Picture, ProcessRow, QueueRow, RingRow, Stuck, Totals,
};

pub use crate::known::ByPath;

use crate::capabilities::Capabilities;
use crate::known::{Basis, Total};
use crate::tables::{Fact, Path, Table};
use crate::tally::{Entry, Tally, bounded, more};
use api::Api;
use copies::Copies;
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

/// What a view must know of the capture besides its facts. By default nothing is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// What is watched.
    pub watched: Capabilities,
    /// The sign by which a simulated GPU was recognized.
    pub simulated: Option<String>,
    /// Whether the capture has ended in order, and nothing of a trace is missing.
    pub complete: bool,
    /// Whether it is a trace whose recorder did not finish.
    pub interrupted: bool,
    /// Tables of a trace with rows that cannot be read.
    pub unread: BTreeSet<Table>,
}

/// What makes totals unknown for ever, although its cause is not shown any more.
#[derive(Clone, Copy, Debug, Default)]
struct Lasting {
    opaque_queues: bool,
    open_queues: bool,
    thunk_unknown: bool,
}

/// The state of the view.
#[derive(Debug, Default)]
pub struct Live {
    capture: Capture,
    lasting: Lasting,
    now_ns: u64,
    began_ns: Option<u64>,
    queues: BTreeMap<u32, LiveQueue>,
    /// Facts of queues that were not kept, because there were [`MAX_QUEUES`].
    other_queues: u64,
    kernels: Kernels,
    rings: Rings,
    ioctls: Ioctls,
    api: Api,
    copies: Copies,
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
            Fact::ApiCall(call) => {
                self.seen(call.enter_ns);
                self.api.add(call);
            }
            Fact::ApiStats(stats) => self.api.sample(stats),
            Fact::Copy(copy) => self.copies.add(copy),
            Fact::RingJob(job) => self.rings.add(job),
            Fact::Queue(queue) => match self.queue(queue.queue) {
                Some(live) => live.numbers(queue),
                None => {
                    self.lasting.opaque_queues |= queue.is_opaque();
                    self.lasting.open_queues |= queue.is_open(false);
                }
            },
            Fact::Process(process) => self.processes.numbers(process),
            Fact::Loss(loss) => more(self.losses.entry(loss.source.clone()).or_default(), loss.count),
            _ => {}
        }
    }

    /// Sets what is known of the capture so far.
    pub fn set_capture(&mut self, capture: Capture) {
        self.capture = capture;
    }

    /// Notes that the capture has ended in order: nothing more will come.
    pub fn complete(&mut self) {
        self.capture.complete = true;
    }

    /// Notes that rows of a table of the trace cannot be read.
    pub fn lacks(&mut self, table: Table) {
        self.capture.unread.insert(table);
        self.capture.complete = false;
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
            let shown = ended.is_none_or(|ended| now.saturating_sub(ended) < SHOWN_AFTER_END_NS);
            if !shown {
                self.lasting.opaque_queues |= queue.is_opaque();
                self.lasting.open_queues |= queue.is_open(now);
            }
            shown
        });
        self.lasting.thunk_unknown |= self.processes.forget(now, SHOWN_AFTER_END_NS);
    }

    /// Returns everything that can be shown, at the latest time that is known.
    #[must_use]
    pub fn picture(&self) -> Picture {
        self.picture_at(self.now_ns)
    }

    /// Returns everything that can be shown, with rates and ages at `now`, a time in the last seconds. At the end of a capture, that
    /// is the moment at which the probes were removed: the rates of later moments fall although nobody counts any more.
    #[must_use]
    pub fn picture_at(&self, now: u64) -> Picture {
        let tally = &self.counts.tally;
        let mut of_processes: BTreeMap<u32, Queues> = BTreeMap::new();
        for queue in self.queues.values() {
            if let Some(pid) = queue.pid {
                of_processes.entry(pid).or_default().add(queue, now);
            }
        }
        let mut all = Queues::default();
        self.queues.values().for_each(|queue| all.add(queue, now));
        let basis = Basis {
            opaque_queues: all.opaque || self.lasting.opaque_queues,
            open_queues: all.open || self.lasting.open_queues || self.other_queues > 0,
            ..self.basis(tally, !self.lasting.thunk_unknown && self.processes.thunks_are_known())
        };
        let queues = self.queues.iter();
        let api = self.api.rows(now);
        let api_known = basis.knows(Total::ApiCalls) || basis.knows(Total::ApiStats);
        let losses = self.losses.iter();
        Picture {
            time_ns: now,
            elapsed_ns: self.began_ns.map(|began| now.saturating_sub(began)),
            simulated: self.capture.simulated.clone(),
            complete: self.capture.complete,
            watched: self.capture.watched,
            unread_tables: self
                .capture
                .unread
                .iter()
                .map(|table| table.name().to_owned())
                .collect(),
            totals: Totals {
                dispatches: basis.when(Total::Dispatches, tally.all_dispatches()),
                by_path: basis.dispatches(&with_unseen(&tally.dispatches, tally)),
                aggregated: basis.when(Total::Dispatches, tally.aggregated.dispatches),
                doorbells: basis.when(Total::Doorbells, tally.doorbells),
                copies: basis.when(Total::Copies, tally.all_copies()),
                other_packets: basis.when(Total::Packets, tally.other_packets.saturating_add(tally.unread)),
                unread: basis.when(Total::Packets, tally.unread),
                dispatches_per_s: basis.when(Total::Dispatches, self.counts.dispatches.per_second(now)),
                doorbells_per_s: basis.when(Total::Doorbells, self.counts.doorbells.per_second(now)),
                copies_per_s: basis.when(Total::Copies, self.counts.copies.per_second(now)),
                api_calls: api_known.then(|| api.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count))),
                history: self.counts.dispatches.history(now),
            },
            queues: queues
                .map(|(&number, queue)| {
                    let thunk_known = queue.pid.is_some_and(|pid| self.processes.thunk_is_known(pid));
                    QueueRow {
                        comm: queue.pid.and_then(|pid| self.processes.comm(pid)),
                        ..queue.row(number, &self.gpus, now, self.basis(queue.tally(), thunk_known))
                    }
                })
                .collect(),
            other_queues: self.other_queues,
            kernels: self.kernels.rows(now, |pid| self.processes.comm(pid)),
            other_kernels: self.kernels.others,
            rings: self.rings.rows(now),
            ioctls: self.ioctls.rows(now),
            api,
            copies: self.copies.rows(now),
            processes: self.processes.rows(now, |pid, tally| {
                let queues = of_processes.get(&pid).copied().unwrap_or_default();
                let opaque_queues = queues.opaque || self.lasting.opaque_queues;
                (
                    queues.count,
                    Basis {
                        opaque_queues,
                        ..self.basis(tally, false)
                    },
                )
            }),
            losses: losses
                .map(|(source, &count)| Loss {
                    source: source.clone(),
                    count,
                })
                .collect(),
        }
    }

    /// Returns what decides whether these counts are known, without what queues contribute to that.
    fn basis(&self, tally: &Tally, thunks: bool) -> Basis<'_> {
        Basis {
            watched: self.capture.watched,
            unread: &self.capture.unread,
            to_end: !self.capture.interrupted,
            opaque_queues: false,
            open_queues: false,
            unknown_formats: tally.unknown_formats > 0,
            unread_unseen: tally.unread_unseen > 0,
            thunks,
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

/// The queues of a process, or all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    count: usize,
    opaque: bool,
    open: bool,
}

impl Queues {
    fn add(&mut self, queue: &LiveQueue, now: u64) {
        self.count += 1;
        self.opaque |= queue.is_opaque();
        self.open |= queue.is_open(now);
    }
}

/// Returns the counts by path, with the packets that bypassed every probe: it is unknown whether they are dispatches.
fn with_unseen(counts: &[u64; Path::ALL.len()], tally: &Tally) -> [u64; Path::ALL.len()] {
    let mut all = *counts;
    more(&mut all[Path::Unseen as usize], tally.unseen_packets);
    all
}

/// Returns the time at which a fact comes in a replay; `None` for facts that have no time of their own, such as snapshots of
/// queues and processes.
#[must_use]
pub fn time_of(fact: &Fact) -> Option<u64> {
    match fact {
        Fact::Progress(progress) => Some(progress.until_ns),
        Fact::Ioctl(ioctl) => Some(ioctl.exit_ns),
        Fact::ApiCall(call) => Some(call.enter_ns),
        Fact::Copy(copy) => Some(copy.time_ns),
        Fact::RingJob(job) => Some(job.done_ns.or(job.run_ns).unwrap_or(job.time_ns)),
        Fact::Loss(loss) => Some(loss.time_ns),
        _ => Entry::of(fact).map(|entry| entry.time_ns),
    }
}

#[cfg(test)]
mod tests;
