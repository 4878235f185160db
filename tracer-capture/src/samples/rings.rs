//! Jobs on rings of the kernel driver: the records of the DRM scheduler's trace events, by their format files.
//!
//! A record of the events before Linux 6.17 has no device, client or fence context: eBPF programs find these in the kernel's
//! structures, and nothing does here.

use tracer_common::{offset::ABSENT, record::EventLayout};
use tracer_core::event::{Event, JobKey, Origin, RingJob, RingStep};

use super::record::{half, string, word};
use crate::probes::ring::Plan;

/// The steps, in the order of a set's events.
const STEPS: [RingStep; 3] = [RingStep::Submit, RingStep::Run, RingStep::Done];

/// The events of the scheduler that this kernel has.
#[derive(Debug)]
pub struct Rings {
    /// The names of the events: submit, run, done.
    pub names: [&'static str; 3],
    layouts: [EventLayout; 3],
}

impl Rings {
    /// Reads the formats of the events. The calling thread must see tracefs. Returns `None` if this kernel does not have them.
    #[must_use]
    pub fn read() -> Option<Self> {
        let plan = Plan::read(None);
        let plan = plan.map_err(|error| log::info!("rings of the kernel driver are not watched: {error}"));
        let plan = plan.ok()?;
        Some(Self {
            names: plan.set.names,
            layouts: plan.layouts(),
        })
    }

    /// Returns the events: each name, and its step.
    pub fn steps(&self) -> impl Iterator<Item = (&'static str, RingStep)> {
        self.names.into_iter().zip(STEPS)
    }

    /// Hands over a step. `traced` is whether the process in whose context it occurred is traced. Returns whether the record was
    /// understood.
    pub fn step(
        &self,
        step: RingStep,
        origin: Origin,
        raw: &[u8],
        traced: bool,
        sink: &mut impl FnMut(&Event<'_>),
    ) -> bool {
        let [submit, run, done] = &self.layouts;
        let layout = match step {
            RingStep::Submit => submit,
            RingStep::Run => run,
            RingStep::Done => done,
        };
        let job = job(step, layout, origin, raw, traced);
        if let Some(job) = &job {
            sink(&Event::RingJob(*job));
        }
        job.is_some()
    }
}

fn job<'a>(step: RingStep, layout: &EventLayout, origin: Origin, raw: &'a [u8], traced: bool) -> Option<RingJob<'a>> {
    let there = |offset: u32| (offset != ABSENT).then_some(offset as usize);
    let number = |offset| word(raw, there(offset)?);
    let name = |offset| string(raw, there(offset)?);
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
        raw
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
        let raw = record();
        let job = job(RingStep::Run, &LAYOUT, Origin::default(), &raw, true).unwrap();
        assert_eq!(job.key, JobKey::Seqno { context: 5, seqno: 6 });
        assert_eq!((job.ring, job.job_id, job.traced), (Some(&b"sdma0"[..]), Some(7), true));
        // What the format does not have is unknown.
        assert_eq!((job.device, job.client_id, job.queued), (None, None, None));
    }

    #[test]
    fn a_record_without_its_key_has_no_job() {
        let raw = record();
        let of = |raw: &[u8]| job(RingStep::Run, &LAYOUT, Origin::default(), raw, true).is_some();
        let key = 28;
        for cut in 0..raw.len() {
            assert_eq!(of(&raw[..cut]), cut >= key, "{cut}");
        }
        // Without a key a job cannot be joined with its other steps.
        let layout = EventLayout {
            context: ABSENT,
            ..LAYOUT
        };
        assert_eq!(job(RingStep::Run, &layout, Origin::default(), &raw, true), None);
    }
}
