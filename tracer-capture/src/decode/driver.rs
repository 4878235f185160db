//! Records of the kernel driver: jobs on its rings, calls of its functions, and its trace events.

use std::borrow::Cow;

use tracer_common::{
    driver_plan::fact,
    placement,
    record::{
        self, driver_event_flags, driver_event_has as has, driver_event_kind, driver_flags, ring_flags, ring_step,
    },
};
use tracer_core::words::Named;
use tracer_core::{
    event::{Event, JobKey, RingJob, RingStep},
    tables::{DriverCall, DriverEvent},
};

use super::{origin, text};
use crate::probes::{
    driver::Functions,
    driver_event::{DriverEventKind, EVENTS},
};

/// Reports a call of a driver function; `None` for a function that has no probe.
pub(super) fn call(r: &record::DriverCall, functions: &Functions, sink: &mut impl FnMut(&Event<'_>)) -> Option<()> {
    let read = |number: usize| {
        let value = *r.facts.get(number)?;
        (r.has >> number & 1 != 0).then_some(value)
    };
    sink(&Event::DriverCall(&DriverCall {
        pid: r.header.tgid,
        tid: r.header.tid,
        enter_ns: r.header.time_ns,
        exit_ns: r.exit_ns,
        function: functions.name(r.function)?.to_owned(),
        ret: r.ret as i32,
        traced: r.header.flags & driver_flags::TRACED != 0,
        doorbell_index: read(fact::DOORBELL),
        queue_type: read(fact::TYPE).map(|value| functions.queue_type(r.function, value)),
        queue_id: read(fact::QUEUE_ID).map(|value| value as u32),
        owner: read(fact::PROCESS).map(|value| value as u32),
        pasid: read(fact::PASID).map(|value| value as u32),
    }));
    Some(())
}

/// Reports a trace event of the driver; `None` for an event that this build does not know.
pub(super) fn event(r: &record::DriverEvent, sink: &mut impl FnMut(&Event<'_>)) -> Option<()> {
    let number = r.header.flags & driver_event_kind::MASK;
    let (event, ..) = EVENTS.into_iter().find(|(event, ..)| *event as u16 == number)?;
    // amdgpu_cs_submit (amdgpu_cs.c) emits amdgpu_cs_ioctl in the ioctl. A buffer is moved by the thread that needs its memory, or
    // that needs the buffer at its new place. The other events come from amdgpu_job_run, which the scheduler calls in a thread of
    // its own.
    let is_requester = matches!(event, DriverEventKind::CsIoctl | DriverEventKind::BoMove);
    let has = |field| r.has & field != 0;
    sink(&Event::DriverEvent(&DriverEvent {
        time_ns: r.header.time_ns,
        event: Cow::Borrowed(event.name()),
        pid: is_requester.then_some(r.header.tgid),
        tid: is_requester.then_some(r.header.tid),
        traced: is_requester.then_some(r.header.flags & driver_event_flags::TRACED != 0),
        ring: has(has::RING).then(|| String::from_utf8_lossy(text(&r.ring)).into_owned()),
        context: has(has::CONTEXT).then_some(r.context),
        seqno: has(has::SEQNO).then_some(r.seqno),
        job_id: has(has::JOB_ID).then_some(r.job_id),
        ibs: has(has::IBS).then_some(r.ibs),
        vmid: has(has::VMID).then_some(r.vmid),
        bytes: has(has::BYTES).then_some(r.bytes),
        old_placement: has(has::OLD_PLACEMENT).then(|| memory(r.old_placement)),
        new_placement: has(has::NEW_PLACEMENT).then(|| memory(r.new_placement)),
    }));
    Some(())
}

/// Returns the name of a memory, or its number.
fn memory(number: u32) -> Cow<'static, str> {
    placement::name(number).map_or_else(|| number.to_string().into(), Cow::Borrowed)
}

pub(super) fn ring_job(r: &record::RingJob, sink: &mut impl FnMut(&Event<'_>)) {
    let flags = r.header.flags;
    let has = |flag| flags & flag != 0;
    let step = match flags & ring_step::MASK {
        ring_step::SUBMIT => RingStep::Submit,
        ring_step::RUN => RingStep::Run,
        _ => RingStep::Done,
    };
    let key = if has(ring_flags::SEQNO) {
        JobKey::Seqno {
            context: r.context,
            seqno: r.seqno,
        }
    } else {
        JobKey::Fence(r.fence)
    };
    sink(&Event::RingJob(RingJob {
        origin: origin(&r.header),
        step,
        key,
        ring: has(ring_flags::RING).then_some(text(&r.ring)),
        device: has(ring_flags::DEVICE).then_some(text(&r.device)),
        client_id: has(ring_flags::CLIENT).then_some(r.client_id),
        job_id: has(ring_flags::JOB_ID).then_some(r.job_id),
        queued: has(ring_flags::QUEUED).then_some(r.queued),
        traced: has(ring_flags::TRACED),
    }));
}
