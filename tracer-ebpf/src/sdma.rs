//! SDMA doorbells: uprobes in the functions of `BlitSdma` that store to the doorbell of an SDMA user queue.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::uprobe,
    programs::ProbeContext,
};
use tracer_common::record::{LossSource, SdmaDoorbell, doorbell_flags, kind};

use crate::{
    doorbell::NO_WAKEUP,
    maps::{Current, EVENTS, lose},
    user,
};

/// Entry: `rdi` the BlitSdma, `rsi` the current index, `rdx` the new one (bytes).
///
/// Attach cookie: the site's number below, the displacement from `rdi` of the write pointer's address above.
#[uprobe]
pub fn sdma_doorbell(ctx: ProbeContext) -> u32 {
    if let (Some(current), Some(this), Some(begin), Some(end)) = (
        Current::traced(),
        ctx.arg::<u64>(0),
        ctx.arg::<u64>(1),
        ctx.arg::<u64>(2),
    ) {
        // SAFETY: helpers without preconditions but a context, which this is.
        let (cookie, time_ns) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), bpf_ktime_get_ns()) };
        let pointer: Option<u64> = user::read(this.wrapping_add_signed(i64::from((cookie >> 32) as i32)));
        let flags = if pointer.is_none() {
            doorbell_flags::UNREADABLE
        } else {
            0
        };
        if let Some(mut entry) = EVENTS.reserve::<SdmaDoorbell>(0) {
            entry.write(SdmaDoorbell {
                header: current.header(kind::SDMA_DOORBELL, flags, cookie as u32, time_ns),
                write_pointer: pointer.unwrap_or(0),
                begin,
                end,
            });
            entry.submit(NO_WAKEUP);
        } else {
            lose(LossSource::SdmaRing, 1);
        }
    }
    0
}
