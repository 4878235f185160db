//! Queues that programs create for themselves: entry and return of `hsa_queue_create` and `hsa_amd_queue_create`. All other queues
//! are the runtime's own.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, generated::bpf_loop},
    macros::{map, uprobe, uretprobe},
    maps::LruHashMap,
    programs::{ProbeContext, RetProbeContext},
};
use tracer_common::{
    queue_descriptor as descriptor,
    record::{HsaQueue, LossSource, hsa_queue_flags, kind},
};

use crate::{
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    proxy, user,
};

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Open {
    /// Stack pointer at the entry.
    sp: u64,
    /// Address where the caller wants the handle, or of the first descriptor.
    place: u64,
    enter_ns: u64,
    /// [`Current::generation`].
    generation: u32,
    /// Number of descriptors; 0 if there are none, but a place for one handle.
    descriptors: u32,
}

/// Open calls by thread. A thread that exits inside the function leaves its call here.
#[map]
static OPEN: LruHashMap<u64, Open> = LruHashMap::with_max_entries(4096, 0);

/// The last of the eight arguments, `hsa_queue_t **queue` (hsa.h): the second word after the return address.
const PLACE: u64 = 16;

/// The maximum number of descriptors of a call that are read. The queues of further ones are reported as one that is unknown.
const MAX_DESCRIPTORS: u32 = 64;

/// Entry of `hsa_queue_create`, or a place after it where the stack is as at the entry.
#[uprobe]
pub fn hsa_queue_enter(ctx: ProbeContext) -> u32 {
    // SAFETY: a field of the program's context.
    let sp = unsafe { (*ctx.regs).rsp };
    let place = user::read(sp.wrapping_add(PLACE)).unwrap_or(0);
    enter(sp, place, 0)
}

/// Entry of `hsa_amd_queue_create(agent, descriptors, count)`, or a place after it where stack and arguments are as at the entry.
#[uprobe]
pub fn hsa_queue_enter_described(ctx: ProbeContext) -> u32 {
    // SAFETY: fields of the program's context.
    let (sp, place, count) = unsafe { ((*ctx.regs).rsp, (*ctx.regs).rsi, (*ctx.regs).rdx as u32) };
    if count == 0 {
        // Such a call creates nothing, and fails.
        return 0;
    }
    enter(sp, place, count)
}

#[inline(always)]
fn enter(sp: u64, place: u64, descriptors: u32) -> u32 {
    if let Some(current) = Current::traced() {
        let open = Open {
            sp,
            place,
            // SAFETY: a helper without preconditions.
            enter_ns: unsafe { bpf_ktime_get_ns() },
            generation: current.generation,
            descriptors,
        };
        // Without this entry, the return reports that it knows nothing about the call's entry.
        let _ = OPEN.insert(current.key(), open, 0);
    }
    0
}

/// The queues of a call that returns.
struct Returned {
    current: Current,
    sp: u64,
    place: u64,
    enter_ns: u64,
    exit_ns: u64,
    descriptors: u32,
    /// Whether the call failed. Some of the queues may exist.
    failed: u32,
}

/// Return from either function.
#[uretprobe]
pub fn hsa_queue_return(ctx: RetProbeContext) -> u32 {
    let Some(current) = Current::traced() else { return 0 };
    // SAFETY: fields of the program's context. The return address was here at the entry.
    let (sp, status) = unsafe { ((*ctx.regs).rsp.wrapping_sub(8), (*ctx.regs).rax as u32) };
    let key = current.key();
    // SAFETY: only this thread changes its entry, and it is running here.
    let open = unsafe { OPEN.get(key) }
        .copied()
        .filter(|open| open.sp == sp && open.generation == current.generation);
    // SAFETY: a helper without preconditions.
    let exit_ns = unsafe { bpf_ktime_get_ns() };
    let mut returned = Returned {
        current,
        sp: sp.wrapping_add(8),
        place: 0,
        enter_ns: exit_ns,
        exit_ns,
        descriptors: 0,
        failed: (status != 0) as u32,
    };
    if let Some(open) = open {
        let _ = OPEN.remove(key);
        returned.place = open.place;
        returned.enter_ns = open.enter_ns;
        returned.descriptors = open.descriptors;
    }
    let mut count = returned.descriptors;
    if count == 0 {
        // A call for one queue that failed created none.
        if status != 0 {
            return 0;
        }
        count = 1;
    }
    if count > MAX_DESCRIPTORS {
        count = MAX_DESCRIPTORS + 1;
    }
    let this: *mut c_void = core::ptr::from_mut(&mut returned).cast();
    // SAFETY: the callback receives this `Returned`, which outlives the call.
    unsafe { bpf_loop(count, report as *mut c_void, this, 0) };
    0
}

/// Reports a queue of a call that returns. A callback of `bpf_loop`, which never ends the loop.
extern "C" fn report(at: u32, returned: *mut c_void) -> i64 {
    // SAFETY: `hsa_queue_return` passes its Returned.
    let returned = unsafe { &*returned.cast::<Returned>() };
    let current = returned.current;
    let mut queue = 0;
    if returned.descriptors == 0 {
        queue = user::read(returned.place).unwrap_or(0);
    } else if at < MAX_DESCRIPTORS {
        let place = returned
            .place
            .wrapping_add(u64::from(at).wrapping_mul(descriptor::LEN as u64));
        let engine = user::read::<u8>(place.wrapping_add(descriptor::ENGINE as u64));
        if let Some(engine) = engine
            && engine != descriptor::ENGINE_COMPUTE
        {
            return 0;
        }
        queue = user::read(place.wrapping_add(descriptor::QUEUE as u64)).unwrap_or(0);
    }
    if returned.failed != 0 && queue == 0 {
        return 0;
    }
    // A queue that is created while other probes are still being attached is treated like one that existed before.
    let made = match current.if_counted() {
        Some(_) => proxy::look(queue),
        None => proxy::Made::NONE,
    };
    let flags = if made.is_proxy == 1 { hsa_queue_flags::PROXY } else { 0 };
    match EVENTS.reserve::<HsaQueue>(0) {
        Some(mut entry) => {
            let record = entry.as_mut_ptr();
            // SAFETY: `record` is the reserved entry, and every field of it is written.
            unsafe {
                addr_of_mut!((*record).header).write(current.header(kind::HSA_QUEUE, flags, 0, returned.enter_ns));
                addr_of_mut!((*record).exit_ns).write(returned.exit_ns);
                addr_of_mut!((*record).queue).write(queue);
                addr_of_mut!((*record).base).write(made.base);
                addr_of_mut!((*record).size).write(made.size);
                addr_of_mut!((*record).pad).write(0);
            }
            entry.submit(NO_WAKEUP);
        }
        None => lose(LossSource::HsaQueueRing, 1),
    }
    if made.is_proxy == 1 {
        made.watch(current, queue, returned.sp);
    }
    0
}
