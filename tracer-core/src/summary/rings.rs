//! Counts of jobs on rings of the kernel driver.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::when;
use crate::tables::RingJob;
use crate::tally::{Histogram, Stats, bounded};

/// Number of rings that are distinguished.
const MAX_RINGS: usize = 1024;
/// The reason of a job that a client created.
const CLIENT: &str = "client";
/// The reason of a job whose creator the kernel's events do not name.
const UNKNOWN: &str = "untold";

/// Jobs on rings of the kernel driver. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Jobs of a ring, and their times from submit to run and from run to done.
type Counts = (Ring, Histogram, Histogram);

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
        let Some((ring, queued, running)) = bounded(&mut self.rings, &key, MAX_RINGS) else {
            return;
        };
        ring.class.clone_from(&job.class);
        ring.jobs += 1;
        ring.traced += traced;
        ring.unfinished += u64::from(job.done_ns.is_none());
        let reason = match (&job.reason, job.client_id) {
            (Some(reason), _) => reason.as_str(),
            (None, Some(_)) => CLIENT,
            (None, None) => UNKNOWN,
        };
        if let Some(jobs) = bounded(&mut ring.by_reason, reason, usize::MAX) {
            *jobs += 1;
        }
        queued.add_known(job.queued_ns());
        running.add_known(job.running_ns());
    }

    /// Returns the counts. `watched` says whether rings were watched.
    pub(super) fn report(self, watched: bool) -> RingJobs {
        let rings = self.rings.into_iter();
        RingJobs {
            total: when(watched, self.total),
            traced: when(watched, self.traced),
            submitter_unknown: when(watched, self.submitter_unknown),
            rings: rings
                .map(|((device, ring), (counts, queued, running))| Ring {
                    device,
                    ring,
                    queued_ns: queued.stats(),
                    running_ns: running.stats(),
                    ..counts
                })
                .collect(),
        }
    }
}
