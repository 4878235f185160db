//! AQL doorbells: uprobes in the functions of `AqlQueue` that store to one.
//!
//! The store itself comes some instructions later, so the packets that it publishes still lie in the ring: they are
//! copied here, because the GPU may consume them the moment after. With several producers a slot below the value may
//! not be written yet; the walk starts again there at the queue's next doorbell.

use aya_ebpf::{
    EbpfContext,
    helpers::{
        bpf_ktime_get_ns,
        generated::{bpf_get_attach_cookie, bpf_loop},
    },
    macros::{map, uprobe},
    maps::HashMap,
    programs::ProbeContext,
};
use core::{ffi::c_void, ptr::addr_of_mut};
use tracer_common::{
    aql::{PACKET_LEN, Packet, packet_type},
    queue,
    record::{Doorbell, Header, LossSource, PACKETS_PER_RECORD, Packets, doorbell_flags as flag, kind},
};

use crate::{
    maps::{Current, EVENTS, lose},
    user,
};

/// The longest walk at one doorbell, in records of `PACKETS_PER_RECORD` packets, two of which may be cut short by the
/// ring's end: the largest ring. What lies beyond is `TRUNCATED`.
const MAX_RECORDS: u32 = queue::MAX_PACKETS / PACKETS_PER_RECORD as u32 + 2;

/// Ring buffer flag: the reader polls, don't wake it.
pub const NO_WAKEUP: u64 = 1;

/// A queue: its process and the address of its `amd_queue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QueueKey {
    pub queue: u64,
    pub tgid: u32,
    pub pad: u32,
}

/// How far a queue was walked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Walked {
    /// Every lower index was captured, or can't be any more. Concurrent programs may set it back a little: then
    /// packets are captured twice, which user space notices, and none is skipped.
    pub low: u64,
    /// One past the highest index published.
    pub max: u64,
}

/// Queues by key. CREATE_QUEUE's exit puts them in, user space removes those of ended processes.
#[map]
pub static QUEUES: HashMap<QueueKey, Walked> = HashMap::with_max_entries(16 << 10, 0);

/// The start of an `amd_queue_t`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Head([u64; queue::HEAD_LEN / 8]);

/// Words from the write index to the read index, both included: one read takes both.
const INDEXES: usize = (queue::READ_DISPATCH_ID - queue::WRITE_DISPATCH_ID) / 8 + 1;

/// What one walk needs to know of its queue.
struct Ring {
    queue: u64,
    base: u64,
    size: u32,
    read_index: u64,
    write_index: u64,
}

/// Attach cookie: the site's number below, the displacement from `rdi` of the pointer to the `amd_signal_t` above.
#[uprobe]
pub fn doorbell(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: a helper without preconditions but a context, which this is.
        let cookie = unsafe { bpf_get_attach_cookie(ctx.as_ptr()) };
        if let (Some(this), Some(value)) = (ctx.arg::<u64>(0), ctx.arg::<u64>(1)) {
            capture(current, cookie, this, value);
        }
    }
    0
}

#[inline(always)]
fn capture(current: Current, cookie: u64, this: u64, value: u64) {
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    let site = cookie as u32;
    let displacement = i64::from((cookie >> 32) as i32);
    let Some(ring) = ring_of(this.wrapping_add_signed(displacement)) else {
        unreadable(current, site, time_ns, value);
        return;
    };
    let key = QueueKey {
        queue: ring.queue,
        tgid: current.tgid,
        pad: 0,
    };
    let (known, flags) = match QUEUES.get_ptr_mut(&key) {
        // SAFETY: a map value stays valid for the program's run; entries are plain integers.
        Some(walked) => (unsafe { *walked }, 0),
        None => {
            // Nothing before this moment is claimed: what the GPU has not consumed yet is there to be read.
            let low = if ring.read_index < value {
                ring.read_index
            } else {
                value
            };
            (Walked { low, max: low }, flag::ADOPTED)
        }
    };
    let mut walk = Walk::of(ring, known, value, current, time_ns);
    walk.flags |= flags;
    if walk.end > walk.first.wrapping_add(1) {
        // SAFETY: the callback gets this very `Walk`, which outlives the call.
        unsafe { bpf_loop(MAX_RECORDS, walk_record as *mut c_void, (&raw mut walk).cast(), 0) };
        if walk.next < walk.end {
            walk.flags |= flag::TRUNCATED;
        }
    }
    submit(&mut walk, current.header(kind::DOORBELL, 0, site, time_ns), value);
    let now = Walked {
        low: walk.low,
        max: walk.end,
    };
    if let Some(walked) = QUEUES.get_ptr_mut(&key) {
        // SAFETY: as above. Concurrent stores are of whole words, and each is true by itself: see `Walked`.
        unsafe { *walked = now };
    } else if QUEUES.insert(&key, &now, 0).is_err() {
        lose(LossSource::QueueMap, 1);
    }
}

/// Submits the doorbell's record; a walk of one packet is done here, into the record itself.
#[inline(always)]
fn submit(walk: &mut Walk, mut header: Header, value: u64) {
    let Some(mut entry) = EVENTS.reserve::<Doorbell>(0) else {
        // The queue's walk starts at the same index next time, so its packets are not lost with this record.
        lose(LossSource::DoorbellRing, 1);
        walk.low = walk.first;
        return;
    };
    let record = entry.as_mut_ptr();
    let (mut count, mut limit) = (0, 0);
    if walk.end == walk.first.wrapping_add(1) {
        let slot = walk.ring.slot(walk.first);
        // SAFETY: the packet's place in the reserved entry takes PACKET_LEN bytes.
        let copied = unsafe { user::copy(addr_of_mut!((*record).packet).cast(), PACKET_LEN as u32, slot) };
        if let (true, Some(now)) = (copied, walk.ring.limit_now()) {
            (count, limit) = (1, now);
            // SAFETY: the packet was written by the copy.
            let first_byte = unsafe { (*record).packet.bytes[0] };
            if walk.ring.is_final(walk.first, first_byte, limit) {
                walk.low = walk.first.wrapping_add(1);
            }
        } else {
            walk.flags |= flag::TRUNCATED;
        }
    }
    header.flags = walk.flags;
    // SAFETY: `record` is the reserved entry, of which every field but the packet is written here. The packet counts
    // only if `count` says so.
    unsafe {
        addr_of_mut!((*record).header).write(header);
        addr_of_mut!((*record).queue).write(walk.ring.queue);
        addr_of_mut!((*record).value).write(value);
        addr_of_mut!((*record).first).write(walk.first);
        addr_of_mut!((*record).end).write(walk.end);
        addr_of_mut!((*record).write_index).write(walk.ring.write_index);
        addr_of_mut!((*record).read_index).write(walk.ring.read_index);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).base).write(walk.ring.base);
        addr_of_mut!((*record).size).write(walk.ring.size);
        addr_of_mut!((*record).count).write(count);
    }
    entry.submit(NO_WAKEUP);
}

/// The indexes that a doorbell makes worth reading, and how far the reading is.
struct Walk {
    ring: Ring,
    current: Current,
    time_ns: u64,
    first: u64,
    end: u64,
    /// First index that is not copied yet.
    next: u64,
    /// Every index from `first` up to here is final.
    low: u64,
    flags: u16,
}

impl Walk {
    #[inline(always)]
    fn of(ring: Ring, known: Walked, value: u64, current: Current, time_ns: u64) -> Self {
        let size = u64::from(ring.size);
        let mut flags = 0;
        let mut first = known.low;
        // A slot is reused only after its packet was consumed, and by a producer that reserved it: one that reserved
        // beyond the ring waits, and its reservation alone says nothing about slots.
        let mut oldest = ring.write_index.saturating_sub(size);
        if oldest > ring.read_index {
            oldest = ring.read_index;
        }
        if first < oldest {
            first = oldest;
            flags |= flag::LAPPED;
        }
        // One past the value, but a value of all ones has nothing past it.
        let mut end = value.saturating_add(1);
        if end > first && end - first > size {
            end = ring.write_index;
            flags |= flag::BEYOND;
        }
        if end < known.max {
            end = known.max;
        }
        if end < first {
            end = first;
        }
        if end - first > size {
            end = first + size;
        }
        Self {
            current,
            time_ns,
            first,
            end,
            next: first,
            low: first,
            flags,
            ring,
        }
    }
}

/// Copies the next packets of a [`Walk`] into a record of their own: a callback of `bpf_loop`, 1 ends the loop.
extern "C" fn walk_record(_: u32, walk: *mut c_void) -> i64 {
    // SAFETY: `capture` passes its Walk.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if walk.next >= walk.end {
        return 1;
    }
    let Some(mut entry) = EVENTS.reserve::<Packets>(0) else {
        lose(LossSource::PacketsRing, 1);
        return 1;
    };
    let record = entry.as_mut_ptr();
    // No run may go past the ring's end.
    let to_end = u64::from(walk.ring.size) - (walk.next & u64::from(walk.ring.size - 1));
    let mut count = walk.end - walk.next;
    if count > to_end {
        count = to_end;
    }
    if count > PACKETS_PER_RECORD as u64 {
        count = PACKETS_PER_RECORD as u64;
    }
    // The verifier must bound the length of the copy. Read back from the record, of whose contents it knows nothing,
    // the count is bounded by the test alone, and the walk's own numbers stay without consequence to it: else it
    // looks at every way to reach them.
    // SAFETY: a field of the reserved entry.
    let copied = unsafe {
        addr_of_mut!((*record).count).write_volatile(count as u32);
        let opaque = addr_of_mut!((*record).count).read_volatile();
        // `packets` takes PACKETS_PER_RECORD packets.
        opaque <= PACKETS_PER_RECORD as u32
            && user::copy(
                addr_of_mut!((*record).packets).cast(),
                opaque * PACKET_LEN as u32,
                walk.ring.slot(walk.next),
            )
    };
    let (true, Some(limit)) = (copied, walk.ring.limit_now()) else {
        entry.discard(NO_WAKEUP);
        return 1;
    };
    // SAFETY: `record` is the reserved entry, of which every field but the packets past `count` is written.
    unsafe {
        addr_of_mut!((*record).header).write(walk.current.header(kind::PACKETS, 0, 0, walk.time_ns));
        addr_of_mut!((*record).queue).write(walk.ring.queue);
        addr_of_mut!((*record).first).write(walk.next);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).read_index).write(walk.ring.read_index);
        addr_of_mut!((*record).size).write(walk.ring.size);
    }
    let packets = record_packets(record);
    for i in 0..PACKETS_PER_RECORD {
        let index = walk.next.wrapping_add(i as u64);
        // A lowest index that is not final stays where it is.
        if i as u64 >= count || walk.low != index {
            break;
        }
        // SAFETY: `i` is below PACKETS_PER_RECORD; the packets up to `count` were written by the copy.
        let first_byte = unsafe { (*packets.add(i)).bytes[0] };
        if walk.ring.is_final(index, first_byte, limit) {
            walk.low = index.wrapping_add(1);
        }
    }
    entry.submit(NO_WAKEUP);
    walk.next += count;
    0
}

#[inline(always)]
fn record_packets(record: *mut Packets) -> *mut Packet {
    // SAFETY: only the address of a field inside the reserved entry is taken.
    unsafe { addr_of_mut!((*record).packets).cast() }
}

/// The ring of the queue whose signal's pointer lies at `signal_pointer`, read from the process.
#[inline(always)]
fn ring_of(signal_pointer: u64) -> Option<Ring> {
    let signal: u64 = user::read(signal_pointer)?;
    let queue: u64 = user::read(signal.wrapping_add(queue::SIGNAL_QUEUE_PTR as u64))?;
    let head: Head = user::read(queue)?;
    let size = head.0[queue::SIZE / 8] as u32;
    if size == 0 || size > queue::MAX_PACKETS || size & (size - 1) != 0 {
        return None;
    }
    Some(Ring {
        queue,
        base: head.0[queue::BASE_ADDRESS / 8],
        size,
        read_index: head.0[queue::READ_DISPATCH_ID / 8],
        write_index: head.0[queue::WRITE_DISPATCH_ID / 8],
    })
}

impl Ring {
    /// Address of the slot of packet `index`.
    #[inline(always)]
    fn slot(&self, index: u64) -> u64 {
        self.base
            .wrapping_add((index & u64::from(self.size - 1)) * PACKET_LEN as u64)
    }

    /// One past the highest index whose producer may write, now: see `Packets::limit`.
    #[inline(always)]
    fn limit_now(&self) -> Option<u64> {
        let from_write_index: [u64; INDEXES] = user::read(self.queue.wrapping_add(queue::WRITE_DISPATCH_ID as u64))?;
        let reach = from_write_index[INDEXES - 1].wrapping_add(u64::from(self.size));
        Some(if from_write_index[0] < reach {
            from_write_index[0]
        } else {
            reach
        })
    }

    /// Whether a slot that was read shows what it ever will of packet `index`: a valid header, a consumed packet, or a
    /// slot that already belongs to a later one.
    #[inline(always)]
    fn is_final(&self, index: u64, first_byte: u8, write_index: u64) -> bool {
        slot_is_final(
            index,
            u64::from(first_byte),
            write_index,
            self.read_index,
            u64::from(self.size),
        ) != 0
    }
}

/// [`Ring::is_final`], as a global function, which the verifier looks at once: inlined, it would follow every
/// combination of outcomes over the packets of a walk.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn slot_is_final(index: u64, first_byte: u64, limit: u64, read_index: u64, size: u64) -> u64 {
    let invalid = first_byte == u64::from(packet_type::INVALID);
    let reused = limit > index.wrapping_add(size);
    let own = read_index.wrapping_add(size) > index;
    u64::from(reused || (own && !invalid) || (invalid && index < read_index))
}

/// A doorbell whose queue can't be read is still a doorbell.
#[inline(always)]
fn unreadable(current: Current, site: u32, time_ns: u64, value: u64) {
    let Some(mut entry) = EVENTS.reserve::<Doorbell>(0) else {
        lose(LossSource::DoorbellRing, 1);
        return;
    };
    entry.write(Doorbell {
        header: current.header(kind::DOORBELL, flag::UNREADABLE, site, time_ns),
        queue: 0,
        value,
        first: 0,
        end: 0,
        write_index: 0,
        read_index: 0,
        limit: 0,
        base: 0,
        size: 0,
        count: 0,
        packet: Packet::ZERO,
    });
    entry.submit(NO_WAKEUP);
}
