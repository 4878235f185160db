//! Queues that programs create for themselves: entry and return of `hsa_queue_create`. All other queues are the runtime's own.

use core::ptr::addr_of_mut;

use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    macros::{map, uprobe, uretprobe},
    maps::LruHashMap,
    programs::{ProbeContext, RetProbeContext},
};
use tracer_common::record::{HsaQueue, LossSource, hsa_queue_flags, kind};

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
    /// Address where the caller wants the handle.
    place: u64,
    enter_ns: u64,
    /// [`Current::generation`].
    generation: u32,
    pad: u32,
}

/// Open calls by thread. A thread that exits inside the function leaves its call here.
#[map]
static OPEN: LruHashMap<u64, Open> = LruHashMap::with_max_entries(4096, 0);

/// The last of the eight arguments, `hsa_queue_t **queue` (hsa.h): the second word after the return address.
const PLACE: u64 = 16;

/// Entry of the function, or a place after it where the stack is as at the entry.
#[uprobe]
pub fn hsa_queue_enter(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: a field of the program's context; a helper without preconditions.
        let (sp, enter_ns) = unsafe { ((*ctx.regs).rsp, bpf_ktime_get_ns()) };
        let open = Open {
            sp,
            place: user::read(sp.wrapping_add(PLACE)).unwrap_or(0),
            enter_ns,
            generation: current.generation,
            pad: 0,
        };
        // Without this entry, the return reports that it knows nothing about the call's entry.
        let _ = OPEN.insert(current.key(), open, 0);
    }
    0
}

/// Return from the function.
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
    if open.is_some() {
        let _ = OPEN.remove(key);
    }
    // A call that failed created no queue.
    if status != 0 {
        return 0;
    }
    // SAFETY: a helper without preconditions.
    let exit_ns = unsafe { bpf_ktime_get_ns() };
    let queue = open.and_then(|open| user::read(open.place)).unwrap_or(0);
    let enter_ns = open.map_or(exit_ns, |open| open.enter_ns);
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
                addr_of_mut!((*record).header).write(current.header(kind::HSA_QUEUE, flags, 0, enter_ns));
                addr_of_mut!((*record).exit_ns).write(exit_ns);
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
        // SAFETY: a field of the program's context.
        made.watch(current, queue, unsafe { (*ctx.regs).rsp });
    }
    0
}
