//! Jobs of the DRM scheduler: joins submit, run and done.

use std::collections::HashMap;

use tracer_common::ring::{self, RingName};

use crate::event::{JobKey, RingJob as Event, RingStep};
use crate::losses::JOB_LIMIT;
use crate::tables::{Fact, Loss, RingJob};

/// Largest number of jobs under way. Beyond it, a new job is counted as lost.
const MAX_JOBS: usize = 65536;
/// Jobs that are not done.
#[derive(Debug, Default)]
pub struct RingJobs {
    under_way: HashMap<JobKey, RingJob>,
}

impl RingJobs {
    /// Processes one step of a job's life.
    pub fn apply(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        match event.step {
            RingStep::Submit => {
                // A fence's address is reused only after its job is gone: the done event of the former job was lost.
                self.give(event.key, out);
                self.begin(event, out);
            }
            RingStep::Run => match self.under_way.get_mut(&event.key) {
                Some(job) => {
                    job.run_ns.get_or_insert(event.origin.time_ns);
                    complete(job, event);
                }
                None => self.begin(event, out),
            },
            RingStep::Done => {
                let mut job = self.under_way.remove(&event.key).unwrap_or_else(|| unseen(event));
                job.done_ns = Some(event.origin.time_ns);
                complete(&mut job, event);
                out(Fact::RingJob(job));
            }
        }
    }

    /// Reports every job that is not done, at the end of the trace.
    pub fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        let mut jobs: Vec<RingJob> = self.under_way.drain().map(|(_, job)| job).collect();
        jobs.sort_by_key(|job| (job.time_ns, job.context, job.seqno, job.job_id));
        jobs.into_iter().for_each(|job| out(Fact::RingJob(job)));
    }

    fn give(&mut self, key: JobKey, out: &mut impl FnMut(Fact)) {
        if let Some(job) = self.under_way.remove(&key) {
            out(Fact::RingJob(job));
        }
    }

    fn begin(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        if self.under_way.len() >= MAX_JOBS {
            out(Fact::Loss(Loss {
                time_ns: event.origin.time_ns,
                source: JOB_LIMIT.to_owned(),
                count: 1,
            }));
            return;
        }
        let mut job = unseen(event);
        let time = Some(event.origin.time_ns);
        if event.step == RingStep::Submit {
            job.submit_ns = time;
            job.pid = Some(event.origin.pid);
            job.tid = Some(event.origin.tid);
            job.traced = Some(event.traced);
        } else {
            job.run_ns = time;
        }
        complete(&mut job, event);
        self.under_way.insert(event.key, job);
    }
}

/// Returns a job of which only the key is known.
fn unseen(event: &Event<'_>) -> RingJob {
    let (context, seqno) = match event.key {
        JobKey::Fence(_) => (None, None),
        JobKey::Seqno { context, seqno } => (Some(context), Some(seqno)),
    };
    RingJob {
        time_ns: event.origin.time_ns,
        ring: None,
        class: ring::RingClass::Other.name().to_owned(),
        device: None,
        context,
        seqno,
        job_id: None,
        client_id: None,
        reason: None,
        pid: None,
        tid: None,
        traced: None,
        submit_ns: None,
        run_ns: None,
        done_ns: None,
        queued: None,
    }
}

/// Adds the values of this event that no earlier event gave.
fn complete(job: &mut RingJob, event: &Event<'_>) {
    if let (None, Some(name)) = (&job.ring, event.ring) {
        let name = String::from_utf8_lossy(name).into_owned();
        RingName::parse(&name).class.name().clone_into(&mut job.class);
        job.ring = Some(name);
    }
    if let (None, Some(device)) = (&job.device, event.device) {
        job.device = Some(String::from_utf8_lossy(device).into_owned());
    }
    if let (None, Some(client)) = (job.client_id, event.client_id) {
        job.client_id = Some(client);
        job.reason = ring::reason(client).map(str::to_owned);
    }
    job.job_id = job.job_id.or(event.job_id);
    if event.step == RingStep::Submit {
        job.queued = event.queued;
    }
}
