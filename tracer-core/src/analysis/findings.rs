//! What a reader should know, with its evidence.

use schemars::JsonSchema;
use serde::Serialize;

use super::QueueUse;
use crate::tables::{Copy, Direction, RingJob};
use crate::tally::more;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something may be wrong, or costs time.
    Warning,
    /// A fact that explains numbers.
    Note,
}

/// A finding. Counts are of what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// Ioctls in API calls that submit work, which stores to a doorbell alone.
    IoctlsInLaunches {
        /// Ioctls.
        ioctls: u64,
        /// Dispatches in calls.
        launches: u64,
    },
    /// Streams share a queue: the work of one waits for that of the others.
    SharedQueue {
        /// Queue, as in `queues.queue`.
        queue: u32,
        /// Streams that were seen on it.
        streams: u64,
    },
    /// A doorbell had an index that was not reserved.
    DoorbellBeyond {
        /// Queue, as in `queues.queue`.
        queue: u32,
        /// Such doorbells.
        doorbells: u64,
    },
    /// Packets were reserved, and no doorbell published them.
    NeverPublished {
        /// Queue, as in `queues.queue`.
        queue: u32,
        /// Such packets.
        packets: u64,
    },
    /// Published packets could not be read.
    UnreadPackets {
        /// Queue, as in `queues.queue`.
        queue: u32,
        /// Such packets.
        packets: u64,
    },
    /// A doorbell published packets before their headers were valid.
    NeverValid {
        /// Queue, as in `queues.queue`.
        queue: u32,
        /// Packets whose headers never became valid while the queue was watched.
        packets: u64,
    },
    /// Compute queues of the recorded processes existed at once, more than the GPU runs at once.
    Oversubscribed {
        /// KFD gpu id.
        gpu_id: u32,
        /// Most queues at a time.
        queues: u64,
        /// Queues that the GPU runs at once, by the KFD topology.
        slots: u64,
    },
    /// Barriers whose wait has no effect.
    RedundantBarriers {
        /// Barriers that wait only for packets before them in their own queue, as their barrier bit does already.
        own: u64,
        /// Barriers that directly follow a barrier that waits for as much and has as wide fences.
        repeated: u64,
        /// Barriers on all queues.
        of: u64,
    },
    /// Barriers wait for packets of other queues.
    BarriersAcrossQueues {
        /// Such barriers, at least.
        at_least: u64,
        /// Such barriers, at most.
        at_most: u64,
        /// Barriers on all queues.
        of: u64,
    },
    /// Doorbells published several packets at once.
    Batches {
        /// Such doorbells.
        doorbells: u64,
        /// Doorbells that published packets.
        of: u64,
        /// Most packets that one of them published.
        largest: u64,
    },
    /// The kernel driver submitted jobs of its own to SDMA rings, between the first and the last SDMA submission of the recorded
    /// processes.
    DriverSdmaJobs {
        /// Such jobs.
        jobs: u64,
    },
    /// Barrier packets among the packets.
    Barriers {
        /// Barriers on all queues.
        barriers: u64,
        /// Dispatches on the same queues.
        dispatches: u64,
    },
    /// More than half of the doorbells found nothing waiting in their queue: the GPU had taken every earlier packet.
    FoundEmpty {
        /// Such doorbells.
        doorbells: u64,
        /// Doorbells that published packets.
        of: u64,
    },
    /// The first launch of each kernel takes longer than the others.
    FirstLaunches {
        /// Kernels.
        kernels: u64,
        /// Time from the calls to the doorbells of first launches, ns.
        first_ns: u64,
        /// The same time of all launches, ns.
        total_ns: u64,
    },
    /// SDMA engines copied within a GPU, or between GPUs.
    SdmaWithinGpus {
        /// Such copies.
        copies: u64,
    },
}

/// Share of barriers among packets from which a report mentions them, as a divisor.
const BARRIERS: u64 = 10;
/// Doorbells from which the share of those that found their queue empty says something about a program.
const DOORBELLS: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct Counter {
    dispatches: u64,
    /// Launches in calls, and their time.
    launches: u64,
    launch_ns: u64,
    /// The same of the first launch of each kernel.
    firsts: u64,
    first_ns: u64,
    ioctls_in_launches: u64,
    within_gpus: u64,
    /// Whether a process submitted to an SDMA engine.
    copied: bool,
    /// Jobs of the driver on SDMA rings after the first such submission: before the last one, and since.
    driver_jobs: u64,
    driver_jobs_since: u64,
}

impl Counter {
    /// Notes a dispatch: whether it is the first one of its kernel, and the time from the call.
    pub(super) fn launch(&mut self, is_first: bool, ns: Option<u64>) {
        self.dispatches += 1;
        let Some(ns) = ns else { return };
        self.launches += 1;
        more(&mut self.launch_ns, ns);
        if is_first {
            self.firsts += 1;
            more(&mut self.first_ns, ns);
        }
    }

    pub(super) fn ioctl(&mut self, in_launch: bool) {
        self.ioctls_in_launches += u64::from(in_launch);
    }

    pub(super) fn copy(&mut self, copy: &Copy) {
        if copy.is_kernel() {
            return;
        }
        self.within_gpus += u64::from(copy.direction == Some(Direction::D2d));
        self.copied = true;
        self.driver_jobs += std::mem::take(&mut self.driver_jobs_since);
    }

    pub(super) fn ring_job(&mut self, job: &RingJob) {
        let is_copy = job.reason.is_some() && job.class == "sdma";
        self.driver_jobs_since += u64::from(self.copied && is_copy);
    }

    /// Returns the findings, warnings first.
    pub(super) fn finish(&self, queues: &[QueueUse], oversubscribed: Vec<Finding>) -> Vec<Finding> {
        let mut found = oversubscribed;
        let mut add = |is: bool, finding: Finding| found.extend(is.then_some(finding));
        for used in queues {
            let (queue, doorbells, streams) = (used.queue, used.beyond, used.streams.len() as u64);
            add(doorbells > 0, Finding::DoorbellBeyond { queue, doorbells });
            let packets = used.never_valid;
            add(packets > 0, Finding::NeverValid { queue, packets });
            let packets = used.unread;
            add(packets > 0, Finding::UnreadPackets { queue, packets });
            let packets = used.pending;
            add(packets > 0, Finding::NeverPublished { queue, packets });
            add(streams > 1, Finding::SharedQueue { queue, streams });
        }
        let sum = |of: fn(&QueueUse) -> u64| queues.iter().map(of).fold(0, u64::saturating_add);
        let (barriers, doorbells) = (sum(|queue| queue.barriers), sum(|queue| queue.doorbells));
        let found_empty = sum(|queue| queue.found_empty);
        let dispatches = self.dispatches;
        add(
            self.ioctls_in_launches > 0,
            Finding::IoctlsInLaunches {
                ioctls: self.ioctls_in_launches,
                launches: self.launches,
            },
        );
        add(
            self.within_gpus > 0,
            Finding::SdmaWithinGpus {
                copies: self.within_gpus,
            },
        );
        let (own, repeated) = (sum(|queue| queue.waits_own), sum(|queue| queue.repeated));
        add(
            own > 0 || repeated > 0,
            Finding::RedundantBarriers {
                own,
                repeated,
                of: barriers,
            },
        );
        let at_most = sum(|queue| queue.waits_elsewhere_at_most);
        add(
            at_most > 0,
            Finding::BarriersAcrossQueues {
                at_least: sum(|queue| queue.waits_elsewhere),
                at_most,
                of: barriers,
            },
        );
        let batches = sum(|queue| queue.batches);
        add(
            batches > 0,
            Finding::Batches {
                doorbells: batches,
                of: doorbells,
                largest: queues.iter().map(|queue| queue.largest_batch).max().unwrap_or(0),
            },
        );
        add(self.driver_jobs > 0, Finding::DriverSdmaJobs { jobs: self.driver_jobs });
        add(
            barriers > 0 && barriers.saturating_mul(BARRIERS) >= barriers.saturating_add(dispatches),
            Finding::Barriers { barriers, dispatches },
        );
        add(
            doorbells >= DOORBELLS && found_empty > doorbells / 2,
            Finding::FoundEmpty {
                doorbells: found_empty,
                of: doorbells,
            },
        );
        add(
            self.firsts > 0 && self.launches > self.firsts,
            Finding::FirstLaunches {
                kernels: self.firsts,
                first_ns: self.first_ns,
                total_ns: self.launch_ns,
            },
        );
        found.sort_by_key(Finding::level);
        found
    }
}

impl Finding {
    /// Returns how serious it is.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::IoctlsInLaunches { .. }
            | Self::SharedQueue { .. }
            | Self::DoorbellBeyond { .. }
            | Self::NeverPublished { .. }
            | Self::UnreadPackets { .. }
            | Self::NeverValid { .. }
            | Self::Oversubscribed { .. }
            | Self::RedundantBarriers { .. }
            | Self::SdmaWithinGpus { .. } => Level::Warning,
            Self::BarriersAcrossQueues { .. }
            | Self::Batches { .. }
            | Self::DriverSdmaJobs { .. }
            | Self::Barriers { .. }
            | Self::FoundEmpty { .. }
            | Self::FirstLaunches { .. } => Level::Note,
        }
    }
}
