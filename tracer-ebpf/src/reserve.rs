//! Advances of a queue's write index: uprobes at the functions behind `hsa_queue_{add,store,cas}_write_index_*`.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::uprobe,
    programs::ProbeContext,
};
use tracer_common::{
    queue,
    record::{LossSource, Reserve, kind},
};

use crate::{
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    user,
};

/// Entry. `rdi` is the `hsa_queue_t`, or the runtime's object that points to it; then come the call's one or two values.
///
/// Attach cookie: the site's number in its lower half; above it 16 bits for the operation (`reserve_op`) and 16 for the offset of
/// the pointer in the object, 0 if `rdi` is the `hsa_queue_t` itself.
#[uprobe]
pub fn reserve(ctx: ProbeContext) -> u32 {
    if let (Some(current), Some(queue), Some(arg)) = (Current::counted(), ctx.arg::<u64>(0), ctx.arg::<u64>(1)) {
        // SAFETY: the helpers' only precondition is a valid context, and this is one.
        let (cookie, time_ns) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), bpf_ktime_get_ns()) };
        let offset = (cookie >> 48) as i16;
        let queue = if offset == 0 {
            queue
        } else {
            user::read(queue.wrapping_add_signed(offset.into())).unwrap_or(0)
        };
        let write_index = user::read(queue.wrapping_add(queue::WRITE_DISPATCH_ID as u64)).unwrap_or(u64::MAX);
        if let Some(mut entry) = EVENTS.reserve::<Reserve>(0) {
            entry.write(Reserve {
                header: current.header(kind::RESERVE, (cookie >> 32) as u16, cookie as u32, time_ns),
                queue,
                arg,
                arg2: ctx.arg::<u64>(2).unwrap_or(0),
                write_index,
            });
            entry.submit(NO_WAKEUP);
        } else {
            lose(LossSource::ReserveRing, 1);
        }
    }
    0
}
