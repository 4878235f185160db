//! Code objects that are loaded and unloaded: a uprobe in the function that the runtime calls around each change of its list, by
//! the convention of debuggers. The process stops there until user space has read the list and its new code objects, because the
//! memory that they were loaded from may be gone a moment later.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_get_attach_cookie, macros::uprobe, programs::ProbeContext};
use tracer_common::{
    r_debug::{R_STATE, RT_CONSISTENT},
    record::{LossSource, hold_reason},
};

use crate::{
    maps::Current,
    pause::{Pause, pause},
    user,
};

/// Attach cookie: the site's number in its lower half, the displacement from the probe to `_amdgpu_r_debug` in its upper half.
#[uprobe]
pub fn code_object(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: the helper's only precondition is a valid context, and this is one; its registers are readable.
        let (cookie, probe, stack) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), (*ctx.regs).rip, (*ctx.regs).rsp) };
        let debug = probe.wrapping_add_signed(i64::from((cookie >> 32) as i32));
        let state: Option<u32> = user::read(debug.wrapping_add(R_STATE as u64));
        // Before a change there is nothing to read yet. A state that cannot be read may be any state.
        if state.is_none_or(|state| state == RT_CONSISTENT) {
            let wanted = Pause {
                address: debug,
                loss: LossSource::CodeObjectRing,
                ..Pause::at_probe(hold_reason::CODE_OBJECTS, cookie as u32, stack)
            };
            pause(current, wanted);
        }
    }
    0
}
