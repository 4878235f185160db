//! Jobs on rings of the kernel driver: the records of the DRM scheduler's trace events, by their format files.
//!
//! A record of the events before Linux 6.17 has no device, client or fence context: eBPF programs find these in the kernel's
//! structures, and nothing does here.

use std::os::fd::OwnedFd;

use tracer_common::{offset::ABSENT, record::EventLayout};
use tracer_core::event::{Event, JobKey, Origin, RingJob, RingStep};

use super::{
    event,
    probes::{Probes, Program},
    record::{half, text, word},
};
use crate::{
    CaptureError,
    probes::{
        ring::{GROUP, Plan},
        tracefs,
    },
};

/// The steps, in the order of a set's events.
const STEPS: [RingStep; 3] = [RingStep::Submit, RingStep::Run, RingStep::Done];

/// The events.
#[derive(Debug)]
pub struct Rings {
    /// The names of the events: submit, run, done.
    pub names: [&'static str; 3],
    layouts: [EventLayout; 3],
    _events: Vec<OwnedFd>,
}

impl Rings {
    /// Opens the events. The calling thread must see tracefs. Returns `None` if this kernel does not have them.
    ///
    /// # Errors
    /// Fails if the kernel refuses them.
    pub fn open(probes: &Probes) -> Result<Option<Self>, CaptureError> {
        let plan = match Plan::read(None) {
            Ok(plan) => plan,
            Err(error) => {
                log::info!("rings of the kernel driver are not watched: {error}");
                return Ok(None);
            }
        };
        let mut events = Vec::new();
        for (name, step) in plan.set.names.into_iter().zip(STEPS) {
            let attributes = event::plain_trace_event(tracefs::number(GROUP, name)?);
            let opened = probes.trace_event(&attributes, Program::Ring(step));
            events.extend(opened.map_err(|error| CaptureError::system("opening a perf event of rings", error))?);
        }
        Ok(Some(Self {
            names: plan.set.names,
            layouts: plan.layouts(),
            _events: events,
        }))
    }

    /// Hands over a step. `traced` is whether the process in whose context it occurred is traced. Returns whether the record was
    /// understood.
    pub fn step(
        &self,
        step: RingStep,
        origin: Origin,
        body: &[u8],
        traced: bool,
        sink: &mut impl FnMut(&Event<'_>),
    ) -> bool {
        let [submit, run, done] = &self.layouts;
        let layout = match step {
            RingStep::Submit => submit,
            RingStep::Run => run,
            RingStep::Done => done,
        };
        let job = job(step, layout, origin, body, traced);
        if let Some(job) = &job {
            sink(&Event::RingJob(*job));
        }
        job.is_some()
    }
}

/// Reads a record: its length, and its bytes.
fn job<'a>(step: RingStep, layout: &EventLayout, origin: Origin, body: &'a [u8], traced: bool) -> Option<RingJob<'a>> {
    let length = half(body, 0)? as usize;
    let raw = body.get(4..length.checked_add(4)?)?;
    let there = |offset: u32| (offset != ABSENT).then_some(offset as usize);
    let number = |offset| word(raw, there(offset)?);
    // The place of a string: its offset in the record in the lower half, its length in the upper half.
    let name = |offset| {
        let location = half(raw, there(offset)?)?;
        Some(text(raw.get((location & 0xffff) as usize..)?))
    };
    let key = match (number(layout.context), number(layout.seqno)) {
        (Some(context), Some(seqno)) => JobKey::Seqno { context, seqno },
        _ => JobKey::Fence(number(layout.fence)?),
    };
    Some(RingJob {
        origin,
        step,
        key,
        ring: name(layout.ring),
        device: name(layout.device),
        client_id: number(layout.client_id),
        job_id: number(layout.job_id),
        queued: there(layout.queued).and_then(|at| half(raw, at)),
        traced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of the new set: 8 common bytes, name, context, number in it, job.
    fn record() -> Vec<u8> {
        let mut raw = vec![0; 8];
        raw.extend((36_u32 | 6 << 16).to_ne_bytes());
        raw.extend(5_u64.to_ne_bytes());
        raw.extend(6_u64.to_ne_bytes());
        raw.extend(7_u64.to_ne_bytes());
        raw.extend(b"sdma0\0");
        let mut body = (raw.len() as u32).to_ne_bytes().to_vec();
        body.extend(raw);
        body
    }

    const LAYOUT: EventLayout = EventLayout {
        ring: 8,
        context: 12,
        seqno: 20,
        job_id: 28,
        ..EventLayout::NONE
    };

    #[test]
    fn a_record_is_read_by_its_format() {
        let body = record();
        let job = job(RingStep::Run, &LAYOUT, Origin::default(), &body, true).unwrap();
        assert_eq!(job.key, JobKey::Seqno { context: 5, seqno: 6 });
        assert_eq!((job.ring, job.job_id, job.traced), (Some(&b"sdma0"[..]), Some(7), true));
        // What the format does not have is unknown.
        assert_eq!((job.device, job.client_id, job.queued), (None, None, None));
    }

    #[test]
    fn a_record_that_is_too_short_has_no_job() {
        let body = record();
        for cut in 0..body.len() {
            assert_eq!(job(RingStep::Run, &LAYOUT, Origin::default(), &body[..cut], true), None);
        }
        // Without a key a job cannot be joined with its other steps.
        let layout = EventLayout {
            context: ABSENT,
            ..LAYOUT
        };
        assert_eq!(job(RingStep::Run, &layout, Origin::default(), &body, true), None);
    }
}
