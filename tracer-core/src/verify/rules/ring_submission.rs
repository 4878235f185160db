//! `ring-submission`: kernels are jobs on compute rings of the kernel driver. Fails if a dispatch took another path, in
//! particular a doorbell. Inconclusive if rings or doorbells were not watched, if packets are unread, or if nothing was
//! submitted.

use super::{Counts, Rule, of_dispatch, of_run, packets_watched, rings_watched};
use crate::tables::{Fact, Path};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::Outcome;
use crate::words::{Named, count};

#[derive(Default)]
pub(super) struct RingSubmission {
    /// Dispatches that took another path.
    otherwise: Offenders,
}

impl Rule for RingSubmission {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) if dispatch.path != Path::Ring => self
                .otherwise
                .add(|| of_dispatch(dispatch, format!("a dispatch by path {}", dispatch.path.name()))),
            Fact::DispatchRun(run) if run.path != Path::Ring => self.otherwise.add_many(run.count, || {
                of_run(run, format!("dispatches by path {}", run.path.name()))
            }),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        let rings = rings_watched(context, finding);
        let packets = packets_watched(context, finding);
        finding.count("compute_jobs", rings.then_some(counts.compute_jobs));
        finding.count("dispatches_otherwise", packets.then_some(self.otherwise.total()));
        finding.blame(Outcome::Fail, self.otherwise, "dispatch", |n| {
            format!("{n} did not go through a ring")
        });
        if counts.unread > 0 {
            let unread = count(counts.unread, "packet");
            finding.say(
                Outcome::Inconclusive,
                format!("not read, and possibly dispatches: {unread}"),
            );
        }
        if rings && counts.compute_jobs == 0 {
            finding.say(
                Outcome::Inconclusive,
                "no traced process submitted a job on a compute ring",
            );
        }
        let jobs = count(counts.compute_jobs, "job");
        format!("all kernels went through compute rings, as {jobs}")
    }
}
