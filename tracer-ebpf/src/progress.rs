//! Last samples of queues: how far the GPU was when a queue was destroyed, or its process exited.
//!
//! A process that stores to a doorbell itself hits no probe, but the GPU's read index shows its submissions. User space samples it
//! from time to time. The last sample is taken here, in the context of the thread that ends the queue, because a moment later the
//! queue's memory is gone. For the same reason the packets that the GPU took without a doorbell are copied here.

mod taken;

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::{
    Global,
    helpers::{bpf_ktime_get_ns, generated::bpf_loop},
    macros::{map, raw_tracepoint, tracepoint},
    maps::LruHashMap,
    programs::{RawTracePointContext, TracePointContext},
};
use tracer_common::{
    kfd::create_queue,
    queue,
    record::{LossSource, Progress, UNKNOWN, kind, progress_flags as flag},
};

use crate::{
    doorbell::{self, QueueKey},
    kernel,
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    signals, user,
};

/// The key of a queue, as the KFD names it to its process.
#[repr(C)]
#[derive(Clone, Copy)]
struct IdKey {
    tgid: u32,
    generation: u32,
    queue_id: u32,
}

/// The addresses of a queue's indexes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Place {
    write_pointer: u64,
    read_pointer: u64,
    /// How often the completion signals were sampled, and at which read index. Each thread of a process that exits would sample
    /// them.
    looks: u64,
    looked_at: u64,
    /// Address of the ring.
    ring: u64,
    /// Packets in the ring: a power of two, or 0 if the size is impossible.
    ring_packets: u64,
    /// Lower indexes of packets without a doorbell were copied, or are no longer in the ring.
    taken_below: u64,
}

/// The maximum number of samples of the same signals. The packets taken last may need a while to complete.
const LOOKS: u64 = 4;

/// The key of a process.
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

/// KFD_MAX_NUM_OF_QUEUES_PER_PROCESS: the driver assigns the lowest free id below it.
const MAX_IDS: u32 = 1024;

/// Offset of `sig` in signal:signal_deliver; 0 if it is not known.
#[unsafe(no_mangle)]
static SIGNAL_NUMBER: Global<u32> = Global::new(0);

/// Offset of `sa_handler` in signal:signal_deliver.
#[unsafe(no_mangle)]
static SIGNAL_HANDLER: Global<u32> = Global::new(0);

/// Signals that do not terminate a process by themselves (signal(7)): CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH.
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

/// Notes that a queue was created. `arg` is the address of the ioctl's argument, which now contains the id.
#[inline(always)]
pub fn created(current: Current, arg: u64, write_pointer: u64, read_pointer: u64) {
    let Some(queue_id) = user::read::<u32>(arg.wrapping_add(create_queue::QUEUE_ID as u64)) else {
        return;
    };
    let ring = user::read::<u64>(arg.wrapping_add(create_queue::RING_BASE as u64)).unwrap_or(0);
    let ring_bytes = user::read::<u32>(arg.wrapping_add(create_queue::RING_SIZE as u64)).unwrap_or(0);
    let place = Place {
        write_pointer,
        read_pointer,
        looks: 0,
        looked_at: 0,
        ring,
        ring_packets: taken::packets(ring_bytes),
        taken_below: 0,
    };
    let _ = PLACES.insert(current.queue(queue_id), place, 0);
    let process = current.process();
    // SAFETY: an entry is one word, and each of its states is valid.
    let most = unsafe { MOST.get(process) }.copied().unwrap_or(0);
    if queue_id < MAX_IDS && queue_id >= most {
        let _ = MOST.insert(process, queue_id + 1, 0);
    }
}

/// Samples a queue when a thread enters DESTROY_QUEUE.
#[inline(always)]
pub fn destroy(current: Current, queue_id: u32) {
    look(&current, queue_id, flag::DESTROY);
}

/// Samples a queue after a DESTROY_QUEUE that succeeded. The queue's memory still exists, because its runtime frees it later.
#[inline(always)]
pub fn destroyed(current: Current, queue_id: u32) {
    look(&current, queue_id, flag::DESTROYED);
    let _ = PLACES.remove(current.queue(queue_id));
}

/// syscalls:sys_enter_exit_group. Kernels whose exits come while the process's memory is still there need neither this event nor
/// signals (`process.rs`).
#[tracepoint]
pub fn progress_exit(_ctx: TracePointContext) -> u32 {
    ending()
}

/// A twin, as in `ioctl`.
#[tracepoint]
pub fn progress_exit_twin(_ctx: TracePointContext) -> u32 {
    ending()
}

/// signal:signal_deliver, in the thread that receives the signal. Each thread of a process that exits receives a SIGKILL.
#[tracepoint]
pub fn progress_signal(ctx: TracePointContext) -> u32 {
    let (number, handler) = (SIGNAL_NUMBER.load() as usize, SIGNAL_HANDLER.load() as usize);
    if number == 0 || Current::traced().is_none() {
        return 0;
    }
    // SAFETY: the offsets are those of the event's format file.
    let (number, handler) = unsafe { (ctx.read_at::<u32>(number), ctx.read_at::<u64>(handler)) };
    delivered(number.unwrap_or(0), handler.unwrap_or(1));
    0
}

/// The same, of the event's arguments: signal, `struct kernel_siginfo *`, `struct k_sigaction *`, which begins with the handler
/// (include/linux/signal_types.h).
#[raw_tracepoint]
pub fn progress_signal_raw(ctx: RawTracePointContext) -> i32 {
    if Current::traced().is_some() {
        // SAFETY: any bytes are a valid address.
        let handler = unsafe { kernel::at::<u64>(ctx.arg(2), 0) };
        delivered(ctx.arg::<u64>(0) as u32, handler.unwrap_or(1));
    }
    0
}

#[inline(always)]
fn delivered(number: u32, handler: u64) {
    // SIG_DFL is 0.
    if number == SIGKILL || (handler == 0 && HARMLESS >> (number & 63) & 1 == 0) {
        ending();
    }
}

/// Samples every queue of the process.
#[inline(always)]
pub fn ending() -> u32 {
    if let Some(mut current) = Current::traced() {
        // SAFETY: an entry is one word, and each of its states is valid.
        let most = unsafe { MOST.get(current.process()) }.copied().unwrap_or(0);
        if most > 0 && most <= MAX_IDS {
            let this: *mut c_void = core::ptr::from_mut(&mut current).cast();
            // SAFETY: the callback receives this `Current`, which outlives the call.
            unsafe { bpf_loop(most, look_at as *mut c_void, this, 0) };
        }
    }
    0
}

/// Samples the queue with the next id; a callback of `bpf_loop`.
extern "C" fn look_at(queue_id: u32, current: *mut c_void) -> i64 {
    // SAFETY: `ending` passes its Current.
    look(unsafe { &*current.cast::<Current>() }, queue_id, flag::PROCESS_END);
    0
}

/// Samples a queue. A function of its own, to save stack.
#[inline(never)]
fn look(current: &Current, queue_id: u32, occasion: u16) {
    let Some(entry) = PLACES.get_ptr_mut(current.queue(queue_id)) else {
        return;
    };
    // SAFETY: a map value stays valid for the program's run. The pointers are written once, before the queue is used.
    let (write_pointer, read_pointer) = unsafe { ((*entry).write_pointer, (*entry).read_pointer) };
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    // The read index is read first: it is never above a write index that is read later.
    let (Some(read_index), Some(write_index)) = (user::read::<u64>(read_pointer), user::read(write_pointer)) else {
        return;
    };
    let queue = write_pointer.wrapping_sub(queue::WRITE_DISPATCH_ID as u64);
    // After the indexes: if the GPU took packets because of a doorbell that was seen, the program of that doorbell had noted it
    // before.
    let rung_end = doorbell::published(&QueueKey::of(*current, queue)).unwrap_or(UNKNOWN);
    let Some(mut reserved) = EVENTS.reserve::<Progress>(0) else {
        lose(LossSource::ProgressRing, 1);
        return;
    };
    let record = reserved.as_mut_ptr();
    // SAFETY: `record` is the reserved entry, and every field of it is written; a helper without preconditions.
    unsafe {
        addr_of_mut!((*record).header).write(current.header(kind::PROGRESS, occasion, 0, time_ns));
        addr_of_mut!((*record).queue).write(queue);
        addr_of_mut!((*record).after_ns).write(bpf_ktime_get_ns());
        addr_of_mut!((*record).read_index).write(read_index);
        addr_of_mut!((*record).write_index).write(write_index);
        addr_of_mut!((*record).rung_end).write(rung_end);
    }
    reserved.submit(NO_WAKEUP);
    if occasion != flag::DESTROYED && rung_end != UNKNOWN && read_index > rung_end {
        taken::copy(current, entry, read_index, rung_end);
    }
    // SAFETY: as above. Threads that exit at the same time may each count, and one sample more or less is harmless.
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
    // At DESTROYED, the packets that ran before DESTROY_QUEUE were already sampled at its entry.
    if occasion != flag::DESTROYED && looks < LOOKS {
        signals::look(current, queue, write_index);
    }
}
