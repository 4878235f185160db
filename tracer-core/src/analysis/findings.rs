//! What a reader should know, with its evidence.

use serde::Serialize;

use super::QueueUse;
use crate::tables::{Copy, Direction};
use crate::tally::more;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Something may be wrong, or costs time.
    Warning,
    /// A fact that explains numbers.
    Note,
}

/// A finding. Counts are of what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
        self.within_gpus += u64::from(!copy.is_kernel() && copy.direction == Some(Direction::D2d));
    }

    /// Returns the findings, warnings first.
    pub(super) fn finish(&self, queues: &[QueueUse]) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut add = |is: bool, finding: Finding| found.extend(is.then_some(finding));
        for used in queues {
            let (queue, doorbells, streams) = (used.queue, used.beyond, used.streams.len() as u64);
            add(doorbells > 0, Finding::DoorbellBeyond { queue, doorbells });
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
        add(
            barriers > 0 && barriers.saturating_mul(BARRIERS) >= barriers.saturating_add(dispatches),
            Finding::Barriers { barriers, dispatches },
        );
        add(
            found_empty > doorbells / 2,
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
            | Self::SdmaWithinGpus { .. } => Level::Warning,
            Self::Barriers { .. } | Self::FoundEmpty { .. } | Self::FirstLaunches { .. } => Level::Note,
        }
    }
}
