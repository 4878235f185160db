//! `ring-submission`: kernels are jobs on compute rings of the kernel driver. Fails if a dispatch took another path, in
//! particular a doorbell. Inconclusive if rings or doorbells were not watched, if packets are unread, or if nothing was
//! submitted.

use super::{Rule, packets_watched, rings_watched};
use crate::tables::{Fact, PacketKind, Path, RingJob};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};
use crate::words::Named;
use crate::words::count;

#[derive(Default)]
pub(super) struct RingSubmission {
    jobs: u64,
    otherwise: Offenders,
    unread: u64,
}

/// Returns whether a job is of the kind that submits a kernel of a traced process.
pub(super) fn is_submission(job: &RingJob) -> bool {
    job.class == "comp" && job.traced == Some(true) && job.reason.is_none()
}

impl Rule for RingSubmission {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::RingJob(job) => self.jobs += u64::from(is_submission(job)),
            Fact::Dispatch(dispatch) if dispatch.path != Path::Ring => self.otherwise.add(|| Offender {
                what: format!("a dispatch by path {}", dispatch.path.name()),
                queue: Some(dispatch.queue),
                index: Some(dispatch.index),
                pid: Some(dispatch.pid),
                tid: Some(dispatch.tid),
                time_ns: Some(dispatch.time_ns),
                ..Offender::default()
            }),
            Fact::DispatchRun(run) if run.path != Path::Ring => self.otherwise.add_many(run.count, || {
                super::of_run(run, format!("dispatches by path {}", run.path.name()))
            }),
            Fact::Packet(packet) if packet.kind == PacketKind::Unread => {
                self.unread = self.unread.saturating_add(packet.count);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let rings = rings_watched(context, &mut finding);
        let packets = packets_watched(context, &mut finding);
        finding.count("compute_jobs", rings.then_some(self.jobs));
        finding.count("dispatches_otherwise", packets.then_some(self.otherwise.total()));
        finding.blame(Outcome::Fail, self.otherwise, |n| {
            format!("{} did not go through a ring", count(n, "dispatch"))
        });
        if self.unread > 0 {
            let unread = self.unread;
            finding.say(
                Outcome::Inconclusive,
                format!("not read, and possibly dispatches: {}", count(unread, "packet")),
            );
        }
        if rings && self.jobs == 0 {
            finding.say(
                Outcome::Inconclusive,
                "no traced process submitted a job on a compute ring",
            );
        }
        let jobs = self.jobs;
        finding.finish("ring-submission", || {
            format!("all kernels went through compute rings, as {}", count(jobs, "job"))
        })
    }
}
