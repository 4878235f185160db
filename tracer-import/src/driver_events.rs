//! Trace events of amdgpu itself.
//!
//! The texts are those of `drivers/gpu/drm/amd/amdgpu/amdgpu_trace.h`, which changed with Linux 6.17: `context=13, seqno=1` became
//! `fence=13:1`, and the number of the job is gone.

use std::borrow::Cow;

use tracer_common::placement;
use tracer_core::event::Event;
use tracer_core::tables::DriverEvent;

use crate::event_line::EventLine;
use crate::fields;

/// The events, and whether they occur in the context of the process that they are about.
const EVENTS: [(&str, bool); 5] = [
    ("amdgpu_cs_ioctl", true),
    ("amdgpu_sched_run_job", false),
    ("amdgpu_bo_move", true),
    ("amdgpu_vm_flush", false),
    ("amdgpu_cleaner_shader", false),
];

/// Returns whether an event of this name is one of the driver's.
pub fn is_one(name: &str) -> bool {
    EVENTS.iter().any(|(event, _)| *event == name)
}

/// Passes the event to `out`. Returns whether it is one of the driver's.
///
/// # Errors
/// Says what the line lacks.
pub fn decode(line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<bool, String> {
    let Some(&(name, is_requester)) = EVENTS.iter().find(|(event, _)| *event == line.name) else {
        return Ok(false);
    };
    let body = line.body;
    let fence = fields::text(body, "fence=").and_then(fields::fence);
    let (context, seqno) = fence.unzip();
    let is_flush = name == "amdgpu_vm_flush";
    let event = DriverEvent {
        time_ns: line.time_ns,
        event: Cow::Borrowed(name),
        pid: line.pid.filter(|_| is_requester),
        tid: is_requester.then_some(line.tid),
        traced: is_requester.then_some(true),
        ring: ring(body),
        context: context.or_else(|| fields::number(body, "context=")),
        seqno: seqno.or_else(|| fields::number(body, "seqno=")),
        job_id: fields::number(body, "sched_job="),
        ibs: fields::number(body, "num_ibs="),
        vmid: fields::number(body, "id=").filter(|_| is_flush),
        bytes: fields::number(body, "size="),
        old_placement: fields::number(body, "from=").map(memory),
        new_placement: fields::number(body, "to=").map(memory),
    };
    let whole = match name {
        "amdgpu_bo_move" => event.bytes.is_some() && event.new_placement.is_some(),
        "amdgpu_vm_flush" => event.ring.is_some() && event.vmid.is_some(),
        _ => event.ring.is_some() && event.seqno.is_some(),
    };
    if !whole {
        return Err("fields are missing".to_owned());
    }
    out(&Event::DriverEvent(&event));
    Ok(true)
}

/// Returns the name of the ring, which has another key in events about a job.
fn ring(body: &str) -> Option<String> {
    let name = fields::text(body, "ring_name=").or_else(|| fields::text(body, "ring="))?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the name of a memory, or its number. The text has -1 for a buffer without memory.
fn memory(number: i64) -> Cow<'static, str> {
    let known = match number {
        -1 => placement::name(placement::NONE),
        number => u32::try_from(number).ok().and_then(placement::name),
    };
    known.map_or_else(|| number.to_string().into(), Cow::Borrowed)
}
