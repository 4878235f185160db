//! AQL doorbells if the functions of `AqlQueue` were not found: uprobes at exported functions that store to a signal.
//!
//! A queue's doorbell is a signal of its own kind, which names its queue. The runtime rings the doorbells of its own dispatches
//! without these functions.
//!
//! Also doorbells of proxies, at the functions that their signals call.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_attach_cookie, macros::uprobe, programs::ProbeContext};
use tracer_common::{
    queue::{SIGNAL_KIND, SIGNAL_KIND_DOORBELL, SIGNAL_KIND_LEGACY_DOORBELL},
    record::{LossSource, PROXY_SITE},
};

use super::{capture, ring::At};
use crate::{
    maps::{Current, lose},
    proxy, user,
};

/// Entry. `rdi` is the signal's handle, which is its address; for a proxy's function, `rdi` is the object that the function belongs
/// to. `rsi` is the value.
///
/// Attach cookie: the site's number in its lower half, `PROXY_SITE` above it for a proxy's function.
#[uprobe]
pub fn doorbell_by_signal(ctx: ProbeContext) -> u32 {
    if let (Some(current), Some(signal), Some(value)) = (Current::counted(), ctx.arg::<u64>(0), ctx.arg::<u64>(1)) {
        // SAFETY: the helper's only precondition is a valid context, and this is one.
        let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
        let at = if (cookie >> 32) as u32 == PROXY_SITE {
            proxy::find(current, signal).map(At::Proxy)
        } else {
            match user::read::<i64>(signal.wrapping_add(SIGNAL_KIND as u64)) {
                Some(SIGNAL_KIND_DOORBELL | SIGNAL_KIND_LEGACY_DOORBELL) => Some(At::Signal(signal)),
                Some(_) => None,
                None => {
                    lose(LossSource::SignalUnread, 1);
                    None
                }
            }
        };
        if let Some(at) = at {
            capture(current, cookie as u32, at, value, ctx.regs, 0);
        }
    }
    0
}
