//! Functions of the kernel driver: KFD handlers, queue life, MES and HWS. One pair of programs serves all of them; the address
//! identifies the function.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_func_ip},
    macros::{kprobe, kretprobe, map},
    maps::HashMap,
    programs::{ProbeContext, RetProbeContext},
};
use tracer_common::record::{DriverCall, Header, LossSource, driver_flags as flag, kind};

use crate::maps::{Current, EVENTS, NO_WAKEUP, lose};

/// A call in progress. A thread may be in several nested functions, but only once in each.
#[repr(C)]
#[derive(Clone, Copy)]
struct CallKey {
    thread: u64,
    function: u64,
}

/// Times of entry.
#[map]
static DRIVER_CALLS: HashMap<CallKey, u64> = HashMap::with_max_entries(4096, 0);

#[kprobe]
pub fn driver_enter(ctx: ProbeContext) -> u32 {
    let key = key(&ctx);
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    if DRIVER_CALLS.insert(key, time_ns, 0).is_err() {
        lose(LossSource::DriverMap, 1);
    }
    0
}

#[kretprobe]
pub fn driver_return(ctx: RetProbeContext) -> u32 {
    let key = key(&ctx);
    // SAFETY: only this thread changes the entry, and it is running here.
    let Some(&enter_ns) = (unsafe { DRIVER_CALLS.get(key) }) else {
        // The function was entered before the probe was attached.
        return 0;
    };
    let _ = DRIVER_CALLS.remove(key);
    let Some(mut entry) = EVENTS.reserve::<DriverCall>(0) else {
        lose(LossSource::DriverRing, 1);
        return 0;
    };
    let traced = if Current::traced().is_some() { flag::TRACED } else { 0 };
    entry.write(DriverCall {
        header: Header {
            kind: kind::DRIVER_CALL,
            flags: traced,
            site: 0,
            time_ns: enter_ns,
            tgid: (key.thread >> 32) as u32,
            tid: key.thread as u32,
        },
        // SAFETY: a helper without preconditions.
        exit_ns: unsafe { bpf_ktime_get_ns() },
        function: key.function,
        ret: ctx.ret::<u64>() as i64,
    });
    entry.submit(NO_WAKEUP);
    0
}

#[inline(always)]
fn key<C: EbpfContext>(ctx: &C) -> CallKey {
    CallKey {
        thread: bpf_get_current_pid_tgid(),
        // SAFETY: the helper's only precondition is a valid context, and this is one.
        function: unsafe { bpf_get_func_ip(ctx.as_ptr()) },
    }
}
