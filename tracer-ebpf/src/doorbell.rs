//! AQL doorbells: uprobes in the functions of `AqlQueue` that store to a doorbell.
//!
//! The store itself comes some instructions later, so the packets that it publishes are still in the ring. The program copies them
//! here, because the GPU may consume them a moment later. With several producers, a slot below the value may not be written yet.
//! The walk starts again at that slot at the queue's next doorbell.

mod by_signal;
mod object;
mod ring;
mod stamps;
mod walk;

use aya_ebpf::{
    EbpfContext,
    bindings::pt_regs,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::{map, uprobe},
    maps::LruHashMap,
    programs::ProbeContext,
};
use core::ptr::addr_of_mut;
use tracer_common::{
    aql::PACKET_LEN,
    record::{Doorbell, Header, LossSource, UNKNOWN, doorbell_flags as flag, gate, kind},
};

use self::{ring::At, walk::Walk};

use crate::{
    api,
    maps::{Current, EVENTS, NO_EXIST, NO_WAKEUP, WAKEUP, begin_epoch, gate_word, lose},
    stacks, user,
};

/// The key of a queue: its process and the address of its `amd_queue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QueueKey {
    pub queue: u64,
    pub tgid: u32,
    /// Generation of the process, so that leftovers of a process that exited are never taken for those of another.
    pub generation: u32,
}

impl QueueKey {
    /// Returns the key of a queue of the process that runs the program.
    #[inline(always)]
    pub fn of(current: Current, queue: u64) -> Self {
        Self {
            queue,
            tgid: current.tgid,
            generation: current.generation,
        }
    }
}

/// The extent of the walks of a queue.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Walked {
    /// Every lower index was captured, or can no longer be captured. Concurrent programs may set this field and the others back a
    /// little. Then packets are captured twice, which user space notices, and none is skipped.
    pub low: u64,
    /// Every lower index was copied by a finished walk, though perhaps before its producer had written it.
    pub copied: u64,
    /// One past the highest published index.
    pub max: u64,
}

/// Queues by key. The exit of CREATE_QUEUE inserts them; the queues that were not rung for longest make room. A queue that returns
/// after that is walked from the GPU's read index on: packets are read twice, none is skipped.
#[map]
pub static QUEUES: LruHashMap<QueueKey, Walked> = LruHashMap::with_max_entries(16 << 10, 0);

/// Starts a new queue. Its packets are walked from its first index.
#[inline(always)]
pub fn begin_queue(current: Current, queue: u64) {
    let unwalked = Walked {
        low: 0,
        copied: 0,
        max: 0,
    };
    match entry(QueueKey::of(current, queue), &unwalked) {
        // SAFETY: a map value stays valid for the program's run; entries are plain integers.
        Some(walked) => unsafe { *walked = unwalked },
        None => lose(LossSource::QueueMap, 1),
    }
    begin_epoch();
}

/// Returns the entry of a queue, and inserts `first` if there is none. An entry is never replaced: its memory would become another
/// queue's at once, while a program on another processor still writes to it.
#[inline(always)]
fn entry(key: QueueKey, first: &Walked) -> Option<*mut Walked> {
    QUEUES.get_ptr_mut(key).or_else(|| {
        // Another program may be faster.
        let _ = QUEUES.insert(key, first, NO_EXIST);
        QUEUES.get_ptr_mut(key)
    })
}

/// Attach cookie: the site's number in its lower half, the displacement from `rdi` of the pointer to the `amd_signal_t` in its
/// upper half.
#[uprobe]
pub fn doorbell(ctx: ProbeContext) -> u32 {
    let gate = gate_word();
    if gate & gate::COUNTS == 0 {
        return 0;
    }
    // SAFETY: the helper's only precondition is a valid context, and this is one.
    let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
    if let (Some(this), Some(value)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1)) {
        let displacement = i64::from((cookie >> 32) as i32);
        let place = this.wrapping_add_signed(displacement);
        let site = cookie as u32;
        let task = bpf_get_current_pid_tgid();
        let epoch = gate & !(gate::EPOCH - 1);
        match object::ring_next(place, epoch, task, site, value) {
            0 => {
                if let Some(current) = Current::traced_of(task) {
                    capture(current, site, At::Pointer(place), value, ctx.regs, epoch);
                }
            }
            time_ns => stacks::take(ctx.regs, time_ns),
        }
    }
    0
}

#[inline(always)]
fn capture(current: Current, site: u32, at: At, value: u64, regs: *const pt_regs, epoch: u64) {
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    let mut walk = Walk::by(current, time_ns, value);
    if let At::Proxy(_) = at {
        walk.flags = flag::PROXY;
    }
    let is_read = walk.ring.read(at);
    let key = QueueKey::of(current, walk.ring.queue);
    if is_read {
        match QUEUES.get_ptr_mut(key) {
            // SAFETY: a map value stays valid for the program's run; entries are plain integers.
            Some(walked) => unsafe {
                walk.low = (*walked).low;
                walk.copied = (*walked).copied;
                walk.rung_end = (*walked).max;
            },
            None => {
                // Nothing before this moment is claimed. The packets that the GPU has not consumed yet can be read.
                let read_index = walk.ring.read_index;
                walk.low = if read_index < value { read_index } else { value };
                walk.copied = walk.low;
                walk.flags |= flag::ADOPTED;
            }
        }
        walk.begin();
        if !walk.is_empty() && !walk.is_single() {
            walk.copy_packets();
        }
    } else {
        diagnose!(
            "process {}: doorbell {} of a queue that can't be read, site {}",
            current.tgid,
            value,
            site
        );
        // It is still a doorbell.
        walk.flags |= flag::UNREADABLE;
        walk.rung_end = UNKNOWN;
    }
    submit(&mut walk, current, current.header(kind::DOORBELL, 0, site, time_ns));
    if !is_read {
        return;
    }
    // After the packets: the copy takes time, and the GPU may consume them.
    stacks::take(regs, time_ns);
    let mut now = Walked {
        low: walk.low,
        copied: walk.copied,
        max: walk.rung_end_after(value),
    };
    match entry(key, &now) {
        // SAFETY: as above. Concurrent stores are of whole words, and each word is true by itself: see `Walked`. A published index
        // stays published, even if another program noted it in between.
        Some(walked) => unsafe {
            if (*walked).max > now.max {
                now.max = (*walked).max;
            }
            *walked = now;
        },
        None => lose(LossSource::QueueMap, 1),
    }
    if let At::Pointer(place) = at {
        object::remember(&current, place, &walk.ring, epoch);
    }
}

/// Submits the doorbell's record. A walk of one packet is done here, into the record itself.
#[inline(always)]
fn submit(walk: &mut Walk, current: Current, mut header: Header) {
    let Some(mut entry) = EVENTS.reserve::<Doorbell>(0) else {
        // The queue's next walk starts at the same index, so its packets are not lost with this record.
        lose(LossSource::DoorbellRing, 1);
        walk.low = walk.first;
        return;
    };
    let record = entry.as_mut_ptr();
    let (mut count, mut limit, mut ready) = (0, 0, 0);
    if walk.is_single() {
        let slot = walk.ring.slot(walk.first);
        // SAFETY: the packet's place in the reserved entry has room for PACKET_LEN bytes.
        let copied = unsafe { user::copy(addr_of_mut!((*record).packet).cast(), PACKET_LEN as u32, slot) };
        if let (true, Some(now)) = (copied, walk.ring.limit_now()) {
            (count, limit) = (1, now);
            walk.copied = walk.end;
            // SAFETY: the packet was written by the copy.
            let first_byte = unsafe { (*record).packet.bytes[0] };
            if walk.ring.is_final(walk.first, first_byte, limit) {
                walk.low = walk.first.wrapping_add(1);
            }
            // The GPU runs no packet from a proxy.
            if walk.flags & flag::PROXY == 0 {
                // SAFETY: the reserved entry, whose packet is written.
                ready = unsafe { stamps::copy_single(walk.ring.queue, slot, record) };
            }
        } else {
            walk.flags |= flag::TRUNCATED;
        }
    }
    header.flags = walk.flags;
    // SAFETY: `record` is the reserved entry. Every field except the packet and the stamps is written here. These count only if
    // `count` and `ready` say so.
    unsafe {
        addr_of_mut!((*record).header).write(header);
        addr_of_mut!((*record).queue).write(walk.ring.queue);
        addr_of_mut!((*record).value).write(walk.value);
        addr_of_mut!((*record).first).write(walk.first);
        addr_of_mut!((*record).end).write(walk.end);
        addr_of_mut!((*record).write_index).write(walk.ring.write_index);
        addr_of_mut!((*record).read_index).write(walk.ring.read_index);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).base).write(walk.ring.base);
        addr_of_mut!((*record).size).write(walk.ring.size);
        addr_of_mut!((*record).count).write(count);
        addr_of_mut!((*record).ready).write(ready);
        addr_of_mut!((*record).rung_end).write(walk.rung_end);
        addr_of_mut!((*record).call).write(api::open_call(current));
    }
    // User space reads the rest of the packets.
    let is_whole = walk.flags & flag::TRUNCATED == 0;
    entry.submit(if is_whole { NO_WAKEUP } else { WAKEUP });
}
