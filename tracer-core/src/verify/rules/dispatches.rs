//! `dispatches`: there is something to judge. Inconclusive if nothing was submitted, or if submissions were not watched: a rule
//! that holds for no dispatch proves nothing.

use super::{Counts, Rule, packets_watched, rings_watched};
use crate::verify::context::Context;
use crate::verify::finding::Finding;
use crate::verify::verdict::Outcome;
use crate::words::count;

pub(super) struct Dispatches {
    /// Whether jobs on compute rings count as well.
    pub(super) jobs_too: bool,
}

impl Rule for Dispatches {
    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        let known = context.capabilities;
        let dispatches = counts.tally.all_dispatches();
        let jobs = if self.jobs_too { counts.compute_jobs } else { 0 };
        finding.count("dispatches", known.packets.then_some(dispatches));
        if self.jobs_too {
            finding.count("compute_jobs", known.kernel_rings.then_some(jobs));
        }
        let watched = if self.jobs_too { rings_watched } else { packets_watched };
        if dispatches == 0 && jobs == 0 && watched(context, finding) {
            finding.say(
                Outcome::Inconclusive,
                "no kernel was dispatched, so there is nothing to judge",
            );
        }
        let (dispatches, jobs) = (count(dispatches, "kernel dispatch"), count(jobs, "job"));
        if self.jobs_too {
            format!("tracer saw {dispatches} and {jobs} on compute rings")
        } else {
            format!("tracer saw {dispatches}")
        }
    }
}
