//! Counts of jobs on rings of the kernel driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Histogram, Stats, count};
use crate::fact::RingJob;

/// Rings that are told apart.
const MAX_RINGS: usize = 1024;
/// What stands for the reason of a job that a client made.
const CLIENT: &str = "client";
/// What stands for the reason of a job whose maker the kernel's events do not tell.
const UNTOLD: &str = "untold";

/// Jobs on rings of the kernel driver. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingJobs {
    /// All of them, of every process and of the driver itself; `None` if rings were not watched.
    pub total: Option<u64>,
    /// Those submitted in the context of a traced process; `None` if rings were not watched.
    pub traced: Option<u64>,
    /// Those whose submit was not seen, so that nobody knows whose they are; `None` if rings were not watched.
    pub submitter_unknown: Option<u64>,
    /// By ring.
    pub rings: Vec<Ring>,
}

/// Jobs on one ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Device; `None` where the kernel's events do not tell.
    pub device: Option<String>,
    /// Name; `None` for jobs of which only the end was seen.
    pub ring: Option<String>,
    /// Class: `gfx`, `comp`, `sdma`, ...
    pub class: String,
    /// Jobs.
    pub jobs: u64,
    /// Those submitted in the context of a traced process.
    pub traced: u64,
    /// Those that were not done when the recording ended, or whose end was not seen.
    pub unfinished: u64,
    /// Jobs by the driver's reason; `client` for those of DRM clients, `untold` where the kernel's events do not tell.
    pub by_reason: BTreeMap<String, u64>,
    /// From submit to run; `None` if no job showed both.
    pub queued_ns: Option<Stats>,
    /// From run to done; `None` if no job showed both.
    pub running_ns: Option<Stats>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    class: String,
    jobs: u64,
    traced: u64,
    unfinished: u64,
    by_reason: BTreeMap<String, u64>,
    queued_ns: Histogram,
    running_ns: Histogram,
}

/// Counts jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    total: u64,
    traced: u64,
    submitter_unknown: u64,
    rings: BTreeMap<(Option<String>, Option<String>), Counts>,
}

impl Counter {
    pub(super) fn add(&mut self, job: &RingJob) {
        let traced = u64::from(job.traced == Some(true));
        self.total += 1;
        self.traced += traced;
        self.submitter_unknown += u64::from(job.traced.is_none());
        let key = (job.device.clone(), job.ring.clone());
        if self.rings.len() >= MAX_RINGS && !self.rings.contains_key(&key) {
            return;
        }
        let ring = self.rings.entry(key).or_default();
        ring.class.clone_from(&job.class);
        ring.jobs += 1;
        ring.traced += traced;
        ring.unfinished += u64::from(job.done_ns.is_none());
        let reason = match (&job.reason, job.client_id) {
            (Some(reason), _) => reason,
            (None, Some(_)) => CLIENT,
            (None, None) => UNTOLD,
        };
        count(&mut ring.by_reason, reason, 1);
        job.queued_ns().into_iter().for_each(|ns| ring.queued_ns.add(ns));
        job.running_ns().into_iter().for_each(|ns| ring.running_ns.add(ns));
    }

    /// The counts, of rings that were watched or not.
    pub(super) fn report(self, watched: bool) -> RingJobs {
        let when = |count: u64| watched.then_some(count);
        let ring = |((device, ring), counts): ((Option<String>, Option<String>), Counts)| Ring {
            device,
            ring,
            class: counts.class,
            jobs: counts.jobs,
            traced: counts.traced,
            unfinished: counts.unfinished,
            by_reason: counts.by_reason,
            queued_ns: counts.queued_ns.stats(),
            running_ns: counts.running_ns.stats(),
        };
        RingJobs {
            total: when(self.total),
            traced: when(self.traced),
            submitter_unknown: when(self.submitter_unknown),
            rings: self.rings.into_iter().map(ring).collect(),
        }
    }
}
