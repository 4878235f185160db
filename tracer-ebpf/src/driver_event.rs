//! Trace events of amdgpu itself. There is one program per event, because a program does not know for which event it runs.
//!
//! User space provides the offsets of the fields, from the event's format file.

use core::ptr::addr_of_mut;

use aya_ebpf::{
    EbpfContext, Global,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::tracepoint,
    programs::TracePointContext,
};
use tracer_common::record::{
    DriverEvent, DriverEventLayout, Header, LossSource, driver_event_flags as flag, driver_event_has as has,
    driver_event_kind as event, kind,
};

use crate::{
    kernel::{self, at},
    maps::{Current, EVENTS, NO_WAKEUP, lose},
};

/// Record of amdgpu_cs_ioctl.
#[unsafe(no_mangle)]
static DRIVER_EVENT_CS: Global<DriverEventLayout> = Global::new(DriverEventLayout::NONE);

/// Record of amdgpu_sched_run_job.
#[unsafe(no_mangle)]
static DRIVER_EVENT_RUN: Global<DriverEventLayout> = Global::new(DriverEventLayout::NONE);

/// Record of amdgpu_bo_move.
#[unsafe(no_mangle)]
static DRIVER_EVENT_MOVE: Global<DriverEventLayout> = Global::new(DriverEventLayout::NONE);

/// Record of amdgpu_vm_flush.
#[unsafe(no_mangle)]
static DRIVER_EVENT_FLUSH: Global<DriverEventLayout> = Global::new(DriverEventLayout::NONE);

/// Record of amdgpu_cleaner_shader.
#[unsafe(no_mangle)]
static DRIVER_EVENT_CLEANER: Global<DriverEventLayout> = Global::new(DriverEventLayout::NONE);

#[tracepoint]
pub fn driver_event_cs(ctx: TracePointContext) -> u32 {
    capture(&ctx, event::CS_IOCTL, DRIVER_EVENT_CS.load())
}

#[tracepoint]
pub fn driver_event_run(ctx: TracePointContext) -> u32 {
    capture(&ctx, event::SCHED_RUN_JOB, DRIVER_EVENT_RUN.load())
}

#[tracepoint]
pub fn driver_event_move(ctx: TracePointContext) -> u32 {
    capture(&ctx, event::BO_MOVE, DRIVER_EVENT_MOVE.load())
}

#[tracepoint]
pub fn driver_event_flush(ctx: TracePointContext) -> u32 {
    capture(&ctx, event::VM_FLUSH, DRIVER_EVENT_FLUSH.load())
}

#[tracepoint]
pub fn driver_event_cleaner(ctx: TracePointContext) -> u32 {
    capture(&ctx, event::CLEANER_SHADER, DRIVER_EVENT_CLEANER.load())
}

#[inline(always)]
fn capture(ctx: &TracePointContext, which: u16, layout: DriverEventLayout) -> u32 {
    let Some(mut entry) = EVENTS.reserve::<DriverEvent>(0) else {
        lose(LossSource::DriverEventRing, 1);
        return 0;
    };
    let record = entry.as_mut_ptr();
    let traced = if Current::traced().is_some() { flag::TRACED } else { 0 };
    let both = bpf_get_current_pid_tgid();
    // SAFETY: the reserved entry, for which any bytes are valid; a field that no bit of `has` names stays 0.
    unsafe {
        record.write_bytes(0, 1);
        addr_of_mut!((*record).header).write(Header {
            kind: kind::DRIVER_EVENT,
            flags: which | traced,
            site: 0,
            time_ns: bpf_ktime_get_ns(),
            tgid: (both >> 32) as u32,
            tid: both as u32,
        });
        let fields = fields(record, ctx.as_ptr() as u64, &layout);
        addr_of_mut!((*record).has).write(fields);
    }
    entry.submit(NO_WAKEUP);
    0
}

/// Copies the fields of the event's record at `base`, and returns which fields it has.
///
/// # Safety
/// `record` must be the reserved entry.
#[inline(always)]
unsafe fn fields(record: *mut DriverEvent, base: u64, layout: &DriverEventLayout) -> u32 {
    let mut there = 0;
    // SAFETY: the caller's promise; every field is an integer, or bytes (the ring).
    unsafe {
        if let Some(context) = fence_part(base, layout.context, layout.fence_bytes) {
            addr_of_mut!((*record).context).write(context);
            there |= has::CONTEXT;
        }
        if let Some(seqno) = fence_part(base, layout.seqno, layout.fence_bytes) {
            addr_of_mut!((*record).seqno).write(seqno);
            there |= has::SEQNO;
        }
        if let Some(id) = at(base, layout.job_id) {
            addr_of_mut!((*record).job_id).write(id);
            there |= has::JOB_ID;
        }
        if let Some(bytes) = at(base, layout.bytes) {
            addr_of_mut!((*record).bytes).write(bytes);
            there |= has::BYTES;
        }
        if let Some(ibs) = at(base, layout.ibs) {
            addr_of_mut!((*record).ibs).write(ibs);
            there |= has::IBS;
        }
        if let Some(vmid) = at(base, layout.vmid) {
            addr_of_mut!((*record).vmid).write(vmid);
            there |= has::VMID;
        }
        if let Some(placement) = at(base, layout.old_placement) {
            addr_of_mut!((*record).old_placement).write(placement);
            there |= has::OLD_PLACEMENT;
        }
        if let Some(placement) = at(base, layout.new_placement) {
            addr_of_mut!((*record).new_placement).write(placement);
            there |= has::NEW_PLACEMENT;
        }
        if let Some(location) = at::<u32>(base, layout.ring)
            && kernel::name(addr_of_mut!((*record).ring).cast(), base + u64::from(location & 0xffff))
        {
            there |= has::RING;
        }
    }
    there
}

/// Reads a context or sequence number, of 4 or 8 bytes.
///
/// # Safety
/// See [`at`].
#[inline(always)]
unsafe fn fence_part(base: u64, offset: u32, bytes: u32) -> Option<u64> {
    // SAFETY: any bytes are an integer.
    unsafe {
        if bytes == 4 {
            at::<u32>(base, offset).map(u64::from)
        } else {
            at(base, offset)
        }
    }
}
