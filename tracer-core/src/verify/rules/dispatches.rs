//! `dispatches`: there is something to judge. Inconclusive if nothing was submitted, or if submissions were not watched: a rule
//! that holds for no dispatch proves nothing.

use super::{Rule, packets_watched, rings_watched};
use crate::tables::Fact;
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::{Outcome, RuleVerdict};
use crate::words::count;

pub(super) struct Dispatches {
    /// Whether jobs on compute rings count as well.
    jobs_too: bool,
    dispatches: u64,
    jobs: u64,
}

impl Dispatches {
    pub(super) fn new(jobs_too: bool) -> Self {
        Self {
            jobs_too,
            dispatches: 0,
            jobs: 0,
        }
    }
}

impl Rule for Dispatches {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(_) => self.dispatches += 1,
            Fact::DispatchRun(run) => self.dispatches = self.dispatches.saturating_add(run.count),
            Fact::RingJob(job) if self.jobs_too => {
                self.jobs += u64::from(super::ring_submission::is_submission(job));
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let known = context.capabilities;
        finding.count("dispatches", known.packets.then_some(self.dispatches));
        if self.jobs_too {
            finding.count("compute_jobs", known.kernel_rings.then_some(self.jobs));
        }
        if self.dispatches == 0 && self.jobs == 0 {
            let watched = if self.jobs_too {
                rings_watched(context, &mut finding)
            } else {
                packets_watched(context, &mut finding)
            };
            if watched {
                finding.say(
                    Outcome::Inconclusive,
                    "no kernel was dispatched, so there is nothing to judge",
                );
            }
        }
        let Self {
            jobs_too,
            dispatches,
            jobs,
        } = *self;
        finding.finish("dispatches", || match jobs_too {
            false => format!("tracer saw {}", count(dispatches, "kernel dispatch")),
            true => format!(
                "tracer saw {} and {} on compute rings",
                count(dispatches, "kernel dispatch"),
                count(jobs, "job")
            ),
        })
    }
}
