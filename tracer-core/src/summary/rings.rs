//! Counts of jobs on rings of the kernel driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::count;
use crate::tables::RingJob;
use crate::tally::{Histogram, Stats};

/// Number of rings that are distinguished.
const MAX_RINGS: usize = 1024;
/// The reason of a job that a client created.
const CLIENT: &str = "client";
/// The reason of a job whose creator the kernel's events do not name.
const UNTOLD: &str = "untold";

/// Jobs on rings of the kernel driver. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingJobs {
    /// All jobs, of every process and of the driver itself; `None` if rings were not watched.
    pub total: Option<u64>,
    /// Jobs that were submitted in the context of a traced process; `None` if rings were not watched.
    pub traced: Option<u64>,
    /// Jobs whose submit was not seen, so that their process is unknown; `None` if rings were not watched.
    pub submitter_unknown: Option<u64>,
    /// Jobs by ring.
    pub rings: Vec<Ring>,
}

/// Jobs on one ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Device; `None` if the kernel's events do not name it.
    pub device: Option<String>,
    /// Name; `None` for jobs of which only the end was seen.
    pub ring: Option<String>,
    /// Class: `gfx`, `comp`, `sdma`, ...
    pub class: String,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that were submitted in the context of a traced process.
    pub traced: u64,
    /// Jobs that were not done when the recording ended, or whose end was not seen.
    pub unfinished: u64,
    /// Jobs by the driver's reason; `client` for jobs of DRM clients, `untold` if the kernel's events do not name the creator.
    pub by_reason: BTreeMap<String, u64>,
    /// Time from submit to run; `None` if no job showed both.
    pub queued_ns: Option<Stats>,
    /// Time from run to done; `None` if no job showed both.
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

    /// Returns the counts. `watched` says whether rings were watched.
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
