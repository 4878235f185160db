//! `no-ring`: no traced process submitted a job on a compute or graphics ring of the kernel driver.
//!
//! Fails if a client submitted a job in the context of a traced process on a `comp_*` or `gfx*` ring. Inconclusive if rings were
//! not watched; if a traced process submitted a job on a ring of unknown kind; and if the submit of a job that may be compute was
//! not seen, because a traced process may have submitted it. Jobs that the driver created for itself, and jobs on other rings,
//! are counted and never decide.

use crate::words::count;
use std::collections::BTreeMap;

use super::{Rule, rings_watched};
use crate::tables::{Fact, RingJob};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};

/// Number of kinds of other jobs that are distinguished.
const MAX_KINDS: usize = 256;

/// The kind of a job, according to the class of its ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Compute,
    Untold,
    Elsewhere,
}

/// Returns whether every submit of a traced process was seen: the processes began after the recording, and every event that could
/// have been missed would have been counted.
fn sees_every_submit(context: &Context) -> bool {
    let whole = context.complete && context.damage.is_empty() && context.losses.values().all(|&count| count == 0);
    context.submits_counted && context.command_began_ns.is_some() && whole
}

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

fn class(job: &RingJob) -> Class {
    match job.class.as_str() {
        "comp" | "gfx" => Class::Compute,
        "other" => Class::Untold,
        _ => Class::Elsewhere,
    }
}

fn offender(what: &str, job: &RingJob) -> Offender {
    Offender {
        what: what.to_owned(),
        ring: job.ring.clone(),
        pid: job.pid,
        tid: job.tid,
        time_ns: Some(job.time_ns),
        ..Offender::default()
    }
}

impl NoRing {
    pub(super) fn new(began_ns: Option<u64>) -> Self {
        Self {
            began_ns,
            jobs: 0,
            traced: Offenders::default(),
            untold: Offenders::default(),
            unseen: Offenders::default(),
            lossy: false,
            others: BTreeMap::new(),
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
        if self.others.len() < MAX_KINDS || self.others.contains_key(&kind) {
            *self.others.entry(kind).or_default() += 1;
        }
    }
}

impl Rule for NoRing {
    fn add(&mut self, fact: &Fact) {
        let job = match fact {
            Fact::RingJob(job) => job,
            Fact::Loss(loss) => {
                self.lossy |= loss.count > 0;
                return;
            }
            _ => return,
        };
        self.jobs += 1;
        let class = class(job);
        let before = self.began_ns.is_some_and(|began| job.time_ns < began);
        let own = job.reason.is_some();
        match (job.traced, class) {
            (Some(true), Class::Compute) if !own => self.traced.add(|| offender("a job of a traced process", job)),
            (Some(true), Class::Untold) if !own => {
                self.untold
                    .add(|| offender("a job of a traced process on a ring of unknown kind", job));
            }
            (None, Class::Compute | Class::Untold) if !own && !before => {
                self.unseen.add(|| offender("a job with unknown submitter", job));
            }
            _ => self.other(job),
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let watched = rings_watched(context, &mut finding);
        finding.count("jobs", watched.then_some(self.jobs));
        finding.count("jobs_of_traced_processes", watched.then_some(self.traced.total()));
        finding.blame(Outcome::Fail, self.traced, |n| {
            format!(
                "traced processes submitted {} on compute or graphics rings",
                count(n, "job")
            )
        });
        finding.blame(Outcome::Inconclusive, self.untold, |n| {
            format!(
                "traced processes submitted {} on rings of unknown kind",
                count(n, "job")
            )
        });
        if !self.lossy && sees_every_submit(context) {
            let earlier = self.unseen.total();
            if earlier > 0 {
                finding.note(format!(
                    "not judged: {} from before the recording",
                    count(earlier, "job")
                ));
            }
        } else {
            finding.blame(Outcome::Inconclusive, self.unseen, |n| {
                format!(
                    "the submitter of {} is unknown, and may be a traced process",
                    count(n, "job")
                )
            });
        }
        for (kind, count) in self.others {
            finding.note(format!("{count} {kind}: not judged"));
        }
        let jobs = self.jobs;
        finding.finish("no-ring", || {
            format!(
                "of {} on rings of the kernel driver, none on a compute or graphics ring is from a traced process",
                count(jobs, "job")
            )
        })
    }
}
