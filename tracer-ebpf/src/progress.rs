//! Last looks at queues: how far the GPU was when a queue was destroyed, or its process ended.
//!
//! A process that stores to a doorbell itself hits no probe, but the GPU's read index tells. User space looks at it from
//! time to time; the last look is taken here, in the context of the thread that ends the queue, because a moment later its
//! memory is gone.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::{
    Global,
    helpers::{bpf_ktime_get_ns, generated::bpf_loop},
    macros::{map, tracepoint},
    maps::LruHashMap,
    programs::TracePointContext,
};
use tracer_common::{
    kfd::create_queue,
    queue,
    record::{LossSource, Progress, UNKNOWN, kind, progress_flags as flag},
};

use crate::{
    doorbell::{NO_WAKEUP, QUEUES, QueueKey},
    maps::{Current, EVENTS, lose},
    signals, user,
};

/// A queue, as the KFD names it to its process.
#[repr(C)]
#[derive(Clone, Copy)]
struct IdKey {
    tgid: u32,
    generation: u32,
    queue_id: u32,
}

/// Where its indexes lie.
#[repr(C)]
#[derive(Clone, Copy)]
struct Place {
    write_pointer: u64,
    read_pointer: u64,
    /// How often completion signals were looked at, and at which read index: each thread of a process that ends would do so.
    looks: u64,
    looked_at: u64,
}

/// Looks at the same signals at the most: what was taken last may take a while to end.
const LOOKS: u64 = 4;

/// A process.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessKey {
    tgid: u32,
    generation: u32,
}

/// AQL queues that were created while their process was traced.
#[map]
static PLACES: LruHashMap<IdKey, Place> = LruHashMap::with_max_entries(16 << 10, 0);

/// One past the highest queue id of a process.
#[map]
static MOST: LruHashMap<ProcessKey, u32> = LruHashMap::with_max_entries(4096, 0);

/// KFD_MAX_NUM_OF_QUEUES_PER_PROCESS: the driver gives the lowest id that is free below it.
const MAX_IDS: u32 = 1024;

/// Offset of `sig` in signal:signal_deliver; 0 if that is not known.
#[unsafe(no_mangle)]
static SIGNAL_NUMBER: Global<u32> = Global::new(0);

/// Offset of `sa_handler` there.
#[unsafe(no_mangle)]
static SIGNAL_HANDLER: Global<u32> = Global::new(0);

/// Signals that end no process by themselves (signal(7)): CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
const HARMLESS: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 22 | 1 << 23 | 1 << 28;
const SIGKILL: u32 = 9;

impl Current {
    #[inline(always)]
    fn queue(self, queue_id: u32) -> IdKey {
        IdKey {
            tgid: self.tgid,
            generation: self.generation,
            queue_id,
        }
    }

    #[inline(always)]
    fn process(self) -> ProcessKey {
        ProcessKey {
            tgid: self.tgid,
            generation: self.generation,
        }
    }
}

/// A queue was created; `arg` is the address of the ioctl's argument, which holds the id now.
#[inline(always)]
pub fn created(current: Current, arg: u64, write_pointer: u64, read_pointer: u64) {
    let Some(queue_id) = user::read::<u32>(arg.wrapping_add(create_queue::QUEUE_ID as u64)) else {
        return;
    };
    let place = Place {
        write_pointer,
        read_pointer,
        looks: 0,
        looked_at: 0,
    };
    let _ = PLACES.insert(current.queue(queue_id), place, 0);
    let process = current.process();
    // SAFETY: an entry is one word, of which every state is true.
    let most = unsafe { MOST.get(process) }.copied().unwrap_or(0);
    if queue_id < MAX_IDS && queue_id >= most {
        let _ = MOST.insert(process, queue_id + 1, 0);
    }
}

/// A thread enters DESTROY_QUEUE.
#[inline(always)]
pub fn destroy(current: Current, queue_id: u32) {
    look(&current, queue_id, flag::DESTROY);
}

/// A DESTROY_QUEUE succeeded. The queue's memory is still there: its runtime frees it after this.
#[inline(always)]
pub fn destroyed(current: Current, queue_id: u32) {
    look(&current, queue_id, flag::DESTROYED);
    let _ = PLACES.remove(current.queue(queue_id));
}

#[tracepoint]
pub fn progress_exit(_ctx: TracePointContext) -> u32 {
    ending()
}

/// A twin, as those of `ioctl`.
#[tracepoint]
pub fn progress_exit_twin(_ctx: TracePointContext) -> u32 {
    ending()
}

/// signal:signal_deliver, in the thread that gets it. Each thread of a process that ends gets a SIGKILL.
#[tracepoint]
pub fn progress_signal(ctx: TracePointContext) -> u32 {
    let (number, handler) = (SIGNAL_NUMBER.load() as usize, SIGNAL_HANDLER.load() as usize);
    if number == 0 || Current::traced().is_none() {
        return 0;
    }
    // SAFETY: the offsets are those of the event's format file.
    let (number, handler) = unsafe {
        (
            ctx.read_at::<u32>(number).unwrap_or(0),
            ctx.read_at::<u64>(handler).unwrap_or(1),
        )
    };
    // SIG_DFL is 0.
    if number == SIGKILL || (handler == 0 && HARMLESS >> (number & 63) & 1 == 0) {
        ending();
    }
    0
}

/// Looks at every queue of the process.
#[inline(always)]
fn ending() -> u32 {
    if let Some(mut current) = Current::traced() {
        // SAFETY: an entry is one word, of which every state is true.
        let most = unsafe { MOST.get(current.process()) }.copied().unwrap_or(0);
        if most > 0 && most <= MAX_IDS {
            let this: *mut c_void = core::ptr::from_mut(&mut current).cast();
            // SAFETY: the callback gets this very `Current`, which outlives the call.
            unsafe { bpf_loop(most, look_at as *mut c_void, this, 0) };
        }
    }
    0
}

/// A callback of `bpf_loop`: the next queue id.
extern "C" fn look_at(queue_id: u32, current: *mut c_void) -> i64 {
    // SAFETY: `ending` passes its Current.
    look(unsafe { &*current.cast::<Current>() }, queue_id, flag::PROCESS_END);
    0
}

/// A function of its own, for the stack's sake.
#[inline(never)]
fn look(current: &Current, queue_id: u32, occasion: u16) {
    let Some(entry) = PLACES.get_ptr_mut(current.queue(queue_id)) else {
        return;
    };
    // SAFETY: a map value stays valid for the program's run. The pointers are written once, before the queue is used.
    let (write_pointer, read_pointer) = unsafe { ((*entry).write_pointer, (*entry).read_pointer) };
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    // The read index first: it is never above a write index that is read later.
    let (Some(read_index), Some(write_index)) = (user::read::<u64>(read_pointer), user::read(write_pointer)) else {
        return;
    };
    let queue = write_pointer.wrapping_sub(queue::WRITE_DISPATCH_ID as u64);
    // After the indexes: what the GPU took by a doorbell that was seen, that doorbell's program had noted before.
    let rung_end = match QUEUES.get_ptr(QueueKey::of(*current, queue)) {
        // SAFETY: a map value stays valid for the program's run; entries are plain integers.
        Some(walked) => unsafe { (*walked).max },
        None => UNKNOWN,
    };
    let Some(mut reserved) = EVENTS.reserve::<Progress>(0) else {
        lose(LossSource::ProgressRing, 1);
        return;
    };
    let record = reserved.as_mut_ptr();
    // SAFETY: `record` is the reserved entry, of which every field is written; a helper without preconditions.
    unsafe {
        addr_of_mut!((*record).header).write(current.header(kind::PROGRESS, occasion, 0, time_ns));
        addr_of_mut!((*record).queue).write(queue);
        addr_of_mut!((*record).after_ns).write(bpf_ktime_get_ns());
        addr_of_mut!((*record).read_index).write(read_index);
        addr_of_mut!((*record).write_index).write(write_index);
        addr_of_mut!((*record).rung_end).write(rung_end);
    }
    reserved.submit(NO_WAKEUP);
    // SAFETY: as above; of threads that end at the same time each may count, and one look more or less is no harm.
    let looks = unsafe {
        let looks = if (*entry).looked_at == read_index {
            (*entry).looks
        } else {
            0
        };
        (*entry).looked_at = read_index;
        (*entry).looks = looks + 1;
        looks
    };
    // What ran before DESTROY_QUEUE was asked about at its entry.
    if occasion != flag::DESTROYED && looks < LOOKS {
        signals::look(current, queue, write_index);
    }
}
