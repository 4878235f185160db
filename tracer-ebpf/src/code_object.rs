//! Code objects that are loaded and unloaded: a uprobe in the function that the runtime calls around each change of its
//! list, as debuggers want it. The process stops there until user space has read the list, and the code objects that are
//! new in it: the memory that they were loaded from may be gone the moment after.

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

/// Attach cookie: the site's number below, the displacement from the probe to `_amdgpu_r_debug` above.
#[uprobe]
pub fn code_object(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: a helper without preconditions but a context, which this is; its registers are there to be read.
        let (cookie, probe, stack) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), (*ctx.regs).rip, (*ctx.regs).rsp) };
        let debug = probe.wrapping_add_signed(i64::from((cookie >> 32) as i32));
        let state: Option<u32> = user::read(debug.wrapping_add(R_STATE as u64));
        // Before a change, nothing is to be read yet. A state that can't be read may be any.
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
