//! Jobs on rings of the kernel driver: the DRM scheduler's events, old and new.
//!
//! User space provides the offsets of the fields, from the event's format file or from the kernel's BTF. The classic programs read
//! the record that the event makes. The raw ones follow pointers from the event's arguments, which contain more on kernels before
//! 6.17 (device, context, sequence number). For each event one of the two is attached.

use core::{mem::offset_of, ptr::addr_of_mut};

use aya_ebpf::{
    EbpfContext, Global,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{raw_tracepoint, tracepoint},
    programs::{RawTracePointContext, TracePointContext},
};
use tracer_common::{
    offset::ABSENT,
    record::{EventLayout, Header, LossSource, RingJob, StructLayout, kind, ring_flags as flag, ring_step as step},
};

use crate::{
    kernel::{self, at},
    maps::{Current, EVENTS, NO_WAKEUP, lose},
};

/// Record of drm_sched_job, drm_sched_job_queue.
#[unsafe(no_mangle)]
static RING_SUBMIT: Global<EventLayout> = Global::new(EventLayout::NONE);

/// Record of drm_run_job, drm_sched_job_run.
#[unsafe(no_mangle)]
static RING_RUN: Global<EventLayout> = Global::new(EventLayout::NONE);

/// Record of drm_sched_process_job, drm_sched_job_done.
#[unsafe(no_mangle)]
static RING_DONE: Global<EventLayout> = Global::new(EventLayout::NONE);

/// Offsets in the scheduler's structures.
#[unsafe(no_mangle)]
static RING_STRUCTS: Global<StructLayout> = Global::new(StructLayout::NONE);

#[tracepoint]
pub fn ring_submit(ctx: TracePointContext) -> u32 {
    from_event(&ctx, step::SUBMIT, RING_SUBMIT.load());
    0
}

#[tracepoint]
pub fn ring_run(ctx: TracePointContext) -> u32 {
    from_event(&ctx, step::RUN, RING_RUN.load());
    0
}

#[tracepoint]
pub fn ring_done(ctx: TracePointContext) -> u32 {
    from_event(&ctx, step::DONE, RING_DONE.load());
    0
}

/// Arguments: `struct drm_sched_job *`, `struct drm_sched_entity *`.
#[raw_tracepoint]
pub fn ring_submit_raw(ctx: RawTracePointContext) -> i32 {
    from_job(ctx.arg(0), ctx.arg(1), step::SUBMIT);
    0
}

/// Arguments: as for submit.
#[raw_tracepoint]
pub fn ring_run_raw(ctx: RawTracePointContext) -> i32 {
    from_job(ctx.arg(0), ctx.arg(1), step::RUN);
    0
}

/// Argument: `struct drm_sched_fence *`.
#[raw_tracepoint]
pub fn ring_done_raw(ctx: RawTracePointContext) -> i32 {
    if let Some(mut entry) = reserve() {
        let mut flags = step::DONE;
        fence(entry.as_mut_ptr(), &mut flags, ctx.arg(0), &RING_STRUCTS.load());
        submit(entry, flags);
    }
    0
}

type Entry = aya_ebpf::maps::ring_buf::RingBufEntry<RingJob>;

#[inline(always)]
fn reserve() -> Option<Entry> {
    let Some(mut entry) = EVENTS.reserve::<RingJob>(0) else {
        lose(LossSource::RingJobRing, 1);
        return None;
    };
    // SAFETY: any bytes are a valid record; a field that no flag names stays 0.
    unsafe { entry.as_mut_ptr().write_bytes(0, 1) };
    Some(entry)
}

#[inline(always)]
fn submit(mut entry: Entry, mut flags: u16) {
    if Current::traced().is_some() {
        flags |= flag::TRACED;
    }
    let both = bpf_get_current_pid_tgid();
    let header = Header {
        kind: kind::RING_JOB,
        flags,
        site: 0,
        // SAFETY: a helper without preconditions.
        time_ns: unsafe { bpf_ktime_get_ns() },
        tgid: (both >> 32) as u32,
        tid: both as u32,
    };
    // SAFETY: the reserved entry.
    unsafe { addr_of_mut!((*entry.as_mut_ptr()).header).write(header) };
    entry.submit(NO_WAKEUP);
}

#[inline(always)]
fn from_event(ctx: &TracePointContext, which: u16, layout: EventLayout) {
    let Some(mut entry) = reserve() else { return };
    let record = entry.as_mut_ptr();
    let base = ctx.as_ptr() as u64;
    let mut flags = which;
    // SAFETY: fields of the reserved entry.
    unsafe {
        if layout.seqno != ABSENT
            && let (Some(context), Some(seqno)) = (at(base, layout.context), at(base, layout.seqno))
        {
            addr_of_mut!((*record).context).write(context);
            addr_of_mut!((*record).seqno).write(seqno);
            flags |= flag::SEQNO;
        }
        if let Some(fence) = at(base, layout.fence) {
            addr_of_mut!((*record).fence).write(fence);
            flags |= flag::FENCE;
        }
        if let Some(client) = at(base, layout.client_id) {
            addr_of_mut!((*record).client_id).write(client);
            flags |= flag::CLIENT;
        }
        if let Some(id) = at(base, layout.job_id) {
            addr_of_mut!((*record).job_id).write(id);
            flags |= flag::JOB_ID;
        }
        if let Some(queued) = at(base, layout.queued) {
            addr_of_mut!((*record).queued).write(queued);
            flags |= flag::QUEUED;
        }
        if let Some(location) = at::<u32>(base, layout.ring)
            && name(record, offset_of!(RingJob, ring), base + u64::from(location & 0xffff))
        {
            flags |= flag::RING;
        }
        if let Some(location) = at::<u32>(base, layout.device)
            && name(record, offset_of!(RingJob, device), base + u64::from(location & 0xffff))
        {
            flags |= flag::DEVICE;
        }
    }
    submit(entry, flags);
}

#[inline(always)]
fn from_job(job: u64, entity: u64, which: u16) {
    let Some(mut entry) = reserve() else { return };
    let record = entry.as_mut_ptr();
    let structs = RING_STRUCTS.load();
    let mut flags = which;
    // SAFETY: fields of the reserved entry.
    unsafe {
        if let Some(of) = at(job, structs.job_fence) {
            fence(record, &mut flags, of, &structs);
        }
        if let Some(id) = at(job, structs.job_id) {
            addr_of_mut!((*record).job_id).write(id);
            flags |= flag::JOB_ID;
        }
        if let Some(queued) = at(entity, structs.queued) {
            addr_of_mut!((*record).queued).write(queued);
            flags |= flag::QUEUED;
        }
        if let Some(sched) = at::<u64>(job, structs.job_sched) {
            if let Some(text) = at(sched, structs.sched_name)
                && name(record, offset_of!(RingJob, ring), text)
            {
                flags |= flag::RING;
            }
            if let Some(device) = at::<u64>(sched, structs.sched_dev)
                && let Some(text) = at(device, structs.device_name)
                && name(record, offset_of!(RingJob, device), text)
            {
                flags |= flag::DEVICE;
            }
        }
    }
    submit(entry, flags);
}

/// Copies the fields of a `struct drm_sched_fence`.
#[inline(always)]
fn fence(record: *mut RingJob, flags: &mut u16, fence: u64, structs: &StructLayout) {
    // SAFETY: fields of the reserved entry.
    unsafe {
        if let (Some(context), Some(seqno)) = (at(fence, structs.context), at(fence, structs.seqno)) {
            addr_of_mut!((*record).context).write(context);
            addr_of_mut!((*record).seqno).write(seqno);
            *flags |= flag::SEQNO;
        }
        if let Some(client) = at(fence, structs.client_id) {
            addr_of_mut!((*record).client_id).write(client);
            *flags |= flag::CLIENT;
        }
    }
}

/// Copies a kernel string to the name at `offset` of the record.
///
/// # Safety
/// `offset` must be that of a field of `NAME_LEN` bytes.
#[inline(always)]
unsafe fn name(record: *mut RingJob, offset: usize, from: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { kernel::name(record.byte_add(offset).cast(), from) }
}
