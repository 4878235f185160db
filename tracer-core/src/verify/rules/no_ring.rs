//! `no-ring`: no traced process submitted a job on a compute or graphics ring of the kernel driver.
//!
//! Fails if a client submitted a job in the context of a traced process on a `comp_*` or `gfx*` ring. Inconclusive if rings were
//! not watched; if a traced process submitted a job on a ring of unknown kind; and if the submit of a job that may be compute was
//! not seen, because a traced process may have submitted it; and if such a job is in imported text, which has the jobs of every
//! process, of a compositor too. Jobs that the driver created for itself, and jobs on other rings,
//! are counted and never decide.

use std::collections::BTreeMap;

use super::{Counts, Rule, rings_watched};
use crate::tables::{Fact, RingJob};
use crate::tally::bounded;
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome};
use crate::words::count;

/// Number of kinds of other jobs that are distinguished.
const MAX_KINDS: usize = 256;

/// Returns whether every submit of a traced process was seen: the processes began after the recording, and every event that could
/// have been missed would have been counted.
fn sees_every_submit(context: &Context) -> bool {
    let whole = context.complete && context.damage.is_empty() && context.losses.values().all(|&count| count == 0);
    context.submits_counted && context.command_began_ns.is_some() && whole
}

#[derive(Default)]
pub(super) struct NoRing {
    /// When the first traced process began, if the recorder started it: earlier jobs are not from a traced process.
    began_ns: Option<u64>,
    jobs: u64,
    /// Jobs that traced processes submitted on compute or graphics rings; `untold` has their jobs on rings of unknown kind.
    traced: Offenders,
    untold: Offenders,
    /// Jobs whose submitter is unknown.
    unseen: Offenders,
    /// Whether events were lost.
    lossy: bool,
    /// Jobs that never decide, by kind.
    others: BTreeMap<String, u64>,
}

impl NoRing {
    pub(super) fn new(began_ns: Option<u64>) -> Self {
        Self {
            began_ns,
            ..Self::default()
        }
    }

    fn other(&mut self, job: &RingJob) {
        let whose = match (&job.reason, job.traced) {
            (Some(reason), _) => format!("the driver's own ({reason})"),
            (None, Some(true)) => "traced processes".to_owned(),
            (None, Some(false)) => "other processes".to_owned(),
            (None, None) => "unknown submitter".to_owned(),
        };
        let kind = format!("{} jobs, {whose}", job.class);
        if let Some(jobs) = bounded(&mut self.others, &kind, MAX_KINDS) {
            *jobs += 1;
        }
    }
}

impl Rule for NoRing {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Loss(loss) = fact {
            self.lossy |= loss.count > 0;
        }
        let Fact::RingJob(job) = fact else { return };
        self.jobs += 1;
        let before = self.began_ns.is_some_and(|began| job.time_ns < began);
        let (offenders, what) = match (job.class.as_str(), job.traced) {
            _ if job.reason.is_some() => return self.other(job),
            ("comp" | "gfx", Some(true)) => (&mut self.traced, "a job of a traced process"),
            ("other", Some(true)) => (&mut self.untold, "a job of a traced process on a ring of unknown kind"),
            ("comp" | "gfx" | "other", None) if !before => (&mut self.unseen, "a job with unknown submitter"),
            _ => return self.other(job),
        };
        offenders.add(|| Offender {
            what: what.to_owned(),
            ring: job.ring.clone(),
            pid: job.pid,
            tid: job.tid,
            time_ns: Some(job.time_ns),
            ..Offender::default()
        });
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let watched = rings_watched(context, finding);
        finding.count("jobs", watched.then_some(self.jobs));
        finding.count("jobs_of_traced_processes", watched.then_some(self.traced.total()));
        if context.imported {
            finding.blame(Outcome::Inconclusive, self.traced, "job", |n| {
                format!("{n} on compute or graphics rings: the text does not show which process is the program")
            });
        } else {
            finding.blame(Outcome::Fail, self.traced, "job", |n| {
                format!("traced processes submitted {n} on compute or graphics rings")
            });
        }
        finding.blame(Outcome::Inconclusive, self.untold, "job", |n| {
            format!("traced processes submitted {n} on rings of unknown kind")
        });
        if !self.lossy && sees_every_submit(context) {
            finding.mention(self.unseen.total(), "job", |n| {
                format!("not judged: {n} from before the recording")
            });
        } else {
            finding.blame(Outcome::Inconclusive, self.unseen, "job", |n| {
                format!("the submitter of {n} is unknown, and may be a traced process")
            });
        }
        for (kind, count) in self.others {
            finding.note(format!("{count} {kind}: not judged"));
        }
        format!(
            "of {} on rings of the kernel driver, none on a compute or graphics ring is from a traced process",
            count(self.jobs, "job")
        )
    }
}
