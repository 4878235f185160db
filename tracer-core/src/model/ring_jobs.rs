//! Jobs of the DRM scheduler: joins submit, run and done.

use tracer_common::ring::{self, RingName};

use super::loss;
use crate::event::{JobKey, Origin, RingJob as Event, RingStep};
use crate::losses::JOB_LIMIT;
use crate::tables::{Fact, RingJob};
use crate::tally::Map;

/// Largest number of jobs under way. Beyond it, a new job is counted as lost.
const MAX_JOBS: usize = 65536;
/// Time after the last step of a job from which the job counts as one whose other steps were lost, by the clock of the trace. The
/// driver resets a ring that works at one job for a minute.
const MAX_AGE_NS: u64 = 600 * 1_000_000_000;
/// Interval of the searches for such jobs, by the same clock.
const SEARCH_NS: u64 = 10 * 1_000_000_000;

/// Jobs that are not done.
#[derive(Debug, Default)]
pub struct RingJobs {
    under_way: Map<JobKey, RingJob>,
    /// Time of the last search for jobs that are too old.
    searched_ns: u64,
}

impl RingJobs {
    /// Processes one step of a job's life.
    pub fn apply(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        self.settle(event.origin.time_ns, out);
        if event.step == RingStep::Done {
            let mut job = self.under_way.remove(&event.key).unwrap_or_else(|| unseen(event));
            complete(&mut job, event);
            return out(Fact::RingJob(job));
        }
        // A fence's address is reused only after its job is gone: the done event of the former job was lost.
        if event.step == RingStep::Submit
            && let Some(former) = self.under_way.remove(&event.key)
        {
            out(Fact::RingJob(former));
        }
        if self.under_way.len() >= MAX_JOBS && !self.under_way.contains_key(&event.key) {
            return out(loss(event.origin.time_ns, JOB_LIMIT, 1));
        }
        complete(self.under_way.entry(event.key).or_insert_with(|| unseen(event)), event);
    }

    /// Reports jobs whose last step is so old that the next one must be lost, and forgets them.
    fn settle(&mut self, now_ns: u64, out: &mut impl FnMut(Fact)) {
        if now_ns < self.searched_ns.saturating_add(SEARCH_NS) {
            return;
        }
        self.searched_ns = now_ns;
        let is_old = |_: &JobKey, job: &mut RingJob| last_step_ns(job).saturating_add(MAX_AGE_NS) <= now_ns;
        report(self.under_way.extract_if(is_old).map(|(_, job)| job).collect(), out);
    }

    /// Reports every job that is not done, at the end of the trace.
    pub fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        report(self.under_way.drain().map(|(_, job)| job).collect(), out);
    }
}

/// Reports jobs that are not done, in the order of time.
fn report(mut jobs: Vec<RingJob>, out: &mut impl FnMut(Fact)) {
    jobs.sort_by_key(|job| (job.time_ns, job.context, job.seqno, job.job_id));
    jobs.into_iter().for_each(|job| out(Fact::RingJob(job)));
}

/// Returns the time of the last step of a job that is not done.
fn last_step_ns(job: &RingJob) -> u64 {
    job.run_ns.or(job.submit_ns).unwrap_or(job.time_ns)
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

/// Adds a step to a job, and the values of this event that no earlier event gave.
fn complete(job: &mut RingJob, event: &Event<'_>) {
    let Origin { time_ns, pid, tid } = event.origin;
    match event.step {
        RingStep::Submit => {
            // Imported text may name the thread only. Process 0 submits no jobs.
            let pid = Some(pid).filter(|&pid| pid != 0);
            (job.submit_ns, job.pid, job.tid) = (Some(time_ns), pid, Some(tid));
            (job.traced, job.queued) = (Some(event.traced), event.queued);
        }
        RingStep::Run => job.run_ns = job.run_ns.or(Some(time_ns)),
        RingStep::Done => job.done_ns = Some(time_ns),
    }
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
}
