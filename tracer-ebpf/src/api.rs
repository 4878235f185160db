//! Calls of functions of HIP, HSA and OpenCL: uprobes at their entries and returns.
//!
//! Each thread has its own stack of open calls, so that a doorbell can name the call during which it is rung. Each call makes one
//! record, at its end, or is only counted.

mod stack;
mod stats;

use aya_ebpf::{
    EbpfContext, Global,
    bindings::pt_regs,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::{uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use core::ptr::addr_of_mut;
use tracer_common::{
    api::{Cookie, LAST_REGISTER, Layer},
    record::{ApiCall, Call, LossSource, NO_STREAM, api_flags as flag, kind},
};

use self::stack::{Frame, Stack as _, THREADS, Thread};
use crate::{
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    user,
};

/// How the programs treat calls: [`OFF`], [`CALLS`], or 2: all calls are only counted.
#[unsafe(no_mangle)]
static API: Global<u8> = Global::new(OFF);

/// No call is probed.
const OFF: u8 = 0;
/// Calls make records, and doorbells name the call during which they are rung. Calls of functions whose cookie says so are only
/// counted.
const CALLS: u8 = 1;

/// The low bits of an address, which are 0 at the start of a page: see [`is_trampoline`].
const IN_PAGE: u64 = 0xfff;

/// Returns the call that the thread is in. If calls are not recorded, the verifier removes this from its callers.
#[inline(always)]
pub fn open_call(current: Current) -> Call {
    open_call_of(current.key())
}

/// The same for a thread whose ids are as `bpf_get_current_pid_tgid` returns them.
#[inline(always)]
pub fn open_call_of(ids: u64) -> Call {
    if API.load() != CALLS {
        return Call::NONE;
    }
    match THREADS.get_ptr(ids) {
        // SAFETY: only this thread changes the entry, and it is running here; plain numbers.
        Some(thread) => unsafe {
            Call {
                call: (*thread).call,
                stream: (*thread).stream,
            }
        },
        None => Call::NONE,
    }
}

/// Ends the thread's calls, because the thread exits or its program ends. No call returns any more.
#[inline(always)]
pub fn leave(current: Current) {
    if API.load() == OFF {
        return;
    }
    if let Some(thread) = THREADS.get_ptr_mut(current.key()) {
        // SAFETY: only this thread changes the entry, and it is running here.
        abandon(&current, unsafe { &mut *thread }, u64::MAX);
        let _ = THREADS.remove(current.key());
    }
}

/// Entry of a function, or a place after it where the arguments and the stack are as at the entry.
#[uprobe]
pub fn api_enter(ctx: ProbeContext) -> u32 {
    // Counted under the same condition as submissions: a call that was entered before would seem to submit nothing.
    if let Some(current) = Current::counted() {
        // SAFETY: the helper's only precondition is a valid context, and this is one.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        enter(&current, cookie, ctx.regs);
    }
    0
}

#[inline(always)]
fn enter(current: &Current, cookie: Cookie, regs: *const pt_regs) {
    // SAFETY: fields of the program's context.
    let (sp, ip) = unsafe { ((*regs).rsp, (*regs).rip) };
    let caller: u64 = user::read(sp).unwrap_or(0);
    if cookie.is_own(ip, caller) {
        return;
    }
    let Some(thread) = stack::of(current) else {
        lose(LossSource::ApiMap, 1);
        return;
    };
    // SAFETY: only this thread changes the entry, and it is running here.
    let thread = unsafe { &mut *thread };
    let jumped = is_trampoline(caller);
    // The stack grows down: a call whose frame is not above this one's was left without a return.
    abandon(current, thread, if jumped { sp } else { sp.saturating_add(1) });
    if let Some(top) = thread.top()
        && Cookie(top.cookie).layer() as u32 == cookie.layer() as u32
        && (is_hsa(cookie) && !Cookie(top.cookie).calls_back() || jumped && top.sp == sp)
    {
        // For HSA, a function that was reached through another library (`std::call_once`) or by a jump, and not from a callback of
        // the program. For HIP and OpenCL, a function that ends by jumping to another.
        return;
    }
    let (call, stream, bytes, object) = if cookie.counted() {
        (stats::place(current, cookie), NO_STREAM, 0, 0)
    } else {
        let [stream, bytes, object] = arguments(cookie, sp, regs);
        let Some(call) = stack::next_call() else { return };
        (call, stream, bytes, object)
    };
    // SAFETY: a helper without preconditions.
    let enter_ns = unsafe { bpf_ktime_get_ns() };
    let frame = Frame {
        sp,
        call,
        enter_ns,
        cookie: cookie.0,
        stream,
        bytes,
        object,
        outer: thread.call,
        outer_stream: thread.stream,
    };
    if !thread.push(&frame) {
        lose(LossSource::ApiDepth, 1);
    } else if cookie.counted() {
        stats::entered(call);
    }
}

#[inline(always)]
fn is_hsa(cookie: Cookie) -> bool {
    matches!(cookie.layer(), Layer::Hsa)
}

/// Returns the stream, bytes and object of a call.
#[inline(always)]
fn arguments(cookie: Cookie, sp: u64, regs: *const pt_regs) -> [u64; 3] {
    // SAFETY: fields of the program's context. Eight words, so that a location of three bits is within the array.
    let words = unsafe {
        let regs = &*regs;
        [0, regs.rdi, regs.rsi, regs.rdx, regs.rcx, regs.r8, regs.r9, 0]
    };
    let argument = |place: u64| {
        if place <= LAST_REGISTER {
            words[(place & 7) as usize]
        } else {
            // The first word is after the return address.
            user::read(sp.wrapping_add((place - LAST_REGISTER) * 8)).unwrap_or(0)
        }
    };
    let stream = if cookie.stream() == 0 {
        NO_STREAM
    } else {
        argument(cookie.stream())
    };
    [stream, argument(cookie.bytes()), argument(cookie.object())]
}

/// Return from a function whose entry was probed.
#[uretprobe]
pub fn api_return(ctx: RetProbeContext) -> u32 {
    let Some(current) = Current::traced() else { return 0 };
    let Some(thread) = THREADS.get_ptr_mut(current.key()) else {
        return 0;
    };
    // SAFETY: only this thread changes the entry, and it is running here; the helper's only precondition is a valid context, and
    // this is one; fields of the context.
    let (thread, cookie, sp, ret) = unsafe {
        let cookie = Cookie(bpf_get_attach_cookie(ctx.as_ptr()));
        let regs = &*ctx.regs;
        // The return address was here at the entry.
        (&mut *thread, cookie, regs.rsp.wrapping_sub(8), regs.rax)
    };
    if thread.generation != current.generation {
        return 0;
    }
    abandon(&current, thread, sp);
    // The library's own call, or a call that was entered before its probe was attached, has no frame.
    if let Some(top) = thread.top()
        && top.sp == sp
        && Cookie(top.cookie).function() == cookie.function()
    {
        thread.pop();
        finish(&current, top, ret as i64, 0);
    }
    0
}

/// Returns whether a return address is the one that the kernel substitutes for the return address of a probed function. In that
/// case a function whose return is probed jumped to this one. The kernel's address is the first byte of a page; few other return
/// addresses are.
#[inline(always)]
fn is_trampoline(address: u64) -> bool {
    address & IN_PAGE == 0
}

/// Ends the calls whose frames are below `sp`. They were left without a return.
#[inline(always)]
fn abandon(current: &Current, thread: &mut Thread, sp: u64) {
    for _ in 0..stack::DEPTH {
        let Some(top) = thread.top() else { return };
        if top.sp >= sp {
            return;
        }
        thread.pop();
        finish(current, top, 0, flag::NEVER_RETURNED);
    }
}

/// Finishes a call that has ended. A function of its own, because programs call it in loops.
#[inline(never)]
fn finish(current: &Current, frame: &Frame, ret: i64, mut flags: u16) {
    // SAFETY: a helper without preconditions.
    let exit_ns = unsafe { bpf_ktime_get_ns() };
    let cookie = Cookie(frame.cookie);
    if cookie.counted() {
        if flags & flag::NEVER_RETURNED == 0 {
            stats::returned(frame.call, cookie.failed(ret), exit_ns.saturating_sub(frame.enter_ns));
        } else {
            stats::left(frame.call);
        }
        return;
    }
    let mut object = frame.object;
    if cookie.makes() {
        object = 0;
        // A call that failed created no object.
        if flags & flag::NEVER_RETURNED == 0
            && ret as u32 == 0
            && let Some(made) = user::read::<u64>(frame.object)
        {
            object = made;
            flags |= flag::OBJECT;
        }
    } else if cookie.object() != 0 {
        flags |= flag::OBJECT;
    }
    if cookie.bytes() != 0 {
        flags |= flag::BYTES;
    }
    let Some(mut entry) = EVENTS.reserve::<ApiCall>(0) else {
        lose(LossSource::ApiRing, 1);
        return;
    };
    let record = entry.as_mut_ptr();
    // SAFETY: `record` is the reserved entry, and every field of it is written.
    unsafe {
        addr_of_mut!((*record).header).write(current.header(kind::API_CALL, flags, 0, frame.enter_ns));
        addr_of_mut!((*record).exit_ns).write(exit_ns);
        addr_of_mut!((*record).call).write(frame.call);
        addr_of_mut!((*record).parent).write(frame.outer);
        addr_of_mut!((*record).stream).write(frame.stream);
        addr_of_mut!((*record).bytes).write(frame.bytes);
        addr_of_mut!((*record).object).write(object);
        addr_of_mut!((*record).ret).write(ret);
        addr_of_mut!((*record).function).write(cookie.function());
        addr_of_mut!((*record).pad).write(0);
    }
    entry.submit(NO_WAKEUP);
}
