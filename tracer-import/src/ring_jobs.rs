//! Events of the DRM scheduler: the steps of a job on a ring of the kernel driver.
//!
//! The texts are those of `drivers/gpu/drm/scheduler/gpu_scheduler_trace.h`. Up to Linux 6.16, a job is known by the hashed address
//! of its fence; from 6.17 on, which also renamed the events, by the fence's context and sequence number.

use tracer_core::event::{Event, JobKey, Origin, RingJob, RingStep};

use crate::event_line::EventLine;
use crate::fields;

/// The events, by their names in both sets.
const EVENTS: [(&str, RingStep); 6] = [
    ("drm_sched_job", RingStep::Submit),
    ("drm_run_job", RingStep::Run),
    ("drm_sched_process_job", RingStep::Done),
    ("drm_sched_job_queue", RingStep::Submit),
    ("drm_sched_job_run", RingStep::Run),
    ("drm_sched_job_done", RingStep::Done),
];

/// Returns the step that an event of this name stands for; `None` if it is no step of a job.
pub fn step(name: &str) -> Option<RingStep> {
    let found = EVENTS.iter().find(|(event, _)| *event == name);
    found.map(|&(_, step)| step)
}

/// Passes the event to `out`.
///
/// # Errors
/// Says what the line lacks.
pub fn decode(line: &EventLine<'_>, step: RingStep, out: &mut impl FnMut(&Event<'_>)) -> Result<(), String> {
    let body = line.body;
    let fence = fields::text(body, "fence=").ok_or("it has no fence")?;
    let key = match fields::fence(fence) {
        Some((context, seqno)) => JobKey::Seqno { context, seqno },
        None => JobKey::Fence(fields::hexadecimal(fence).ok_or("its fence is no number")?),
    };
    let ring = fields::text(body, "ring=").filter(|ring| !ring.is_empty());
    if step != RingStep::Done && ring.is_none() {
        return Err("it has no ring".to_owned());
    }
    out(&Event::RingJob(RingJob {
        origin: Origin {
            time_ns: line.time_ns,
            pid: line.pid.unwrap_or_default(),
            tid: line.tid,
        },
        step,
        key,
        ring: ring.map(str::as_bytes),
        device: fields::text(body, "dev=").map(str::as_bytes),
        client_id: fields::number(body, "client_id:"),
        job_id: fields::number(body, "id="),
        queued: fields::number(body, "job count:"),
        // The text has the jobs of every process: no choice of processes leaves any out.
        traced: true,
    }));
    Ok(())
}
