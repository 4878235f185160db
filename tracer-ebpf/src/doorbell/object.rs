//! The usual doorbell. Its few packets follow those of the queue's last doorbell.
//!
//! What the runtime's object led to at that doorbell is remembered, so that only the packets and the indexes are read. The object
//! leads to the same queue as long as it exists, and its memory can only become another queue's object before that queue is created.
//! So what was learned in an earlier epoch is learned again.

use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::map, maps::LruHashMap};
use core::ptr::{addr_of, addr_of_mut};
use tracer_common::{
    aql::{PACKET_LEN, Packet, packet_type},
    queue,
    record::{Header, NEXT_DOORBELLS, NextDoorbell, Stamps, kind},
};

use super::{QUEUES, QueueKey, ring::Ring, stamps};
use crate::{
    api,
    maps::{Current, EVENTS, NO_EXIST, NO_WAKEUP},
    signals, user,
};

/// The key of an object: its process, and the address in it at which the address of the queue's signal is.
#[repr(C)]
#[derive(Clone, Copy)]
struct ObjectKey {
    place: u64,
    tgid: u64,
}

/// What an object led to at its last doorbell.
#[repr(C)]
#[derive(Clone, Copy)]
struct Known {
    /// [`tag`] of the object and the epoch: a program may hold the entry while the map gives it to another object.
    tag: u64,
    queue: u64,
    base: u64,
    /// Read index at that doorbell. It is at least this now.
    read_index: u64,
    /// Packets in the ring.
    size: u32,
    /// Generation of the process.
    generation: u32,
    /// Whether the queue was profiled then.
    profiled: u64,
}

impl Known {
    /// What no object led to.
    const NONE: Self = Self {
        tag: 0,
        queue: 0,
        base: 0,
        read_index: 0,
        size: 0,
        generation: 0,
        profiled: 0,
    };

    /// Returns whether the entry has this tag.
    #[inline(always)]
    fn is(&self, tag: u64) -> bool {
        // SAFETY: a field of a valid value; other programs may change it, so each call reads it.
        unsafe { addr_of!(self.tag).read_volatile() == tag }
    }
}

/// Returns a hash of an object and the epoch. Both as they are would take more stack.
#[inline(always)]
fn tag(place: u64, epoch: u64) -> u64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ epoch
}

/// Objects by key. Those that were not used for longest make room.
#[map(name = "QUEUE_OBJECTS")]
static OBJECTS: LruHashMap<ObjectKey, Known> = LruHashMap::with_max_entries(16 << 10, 0);

/// Words of an `amd_queue_t` from the read index to the properties, including both. One read takes all. From the write index on, they
/// would need more stack than kernels before 6.13 have for this program and the walk's.
const WORDS: usize = (queue::PROPERTIES - queue::READ_DISPATCH_ID) / 8 + 1;
/// The bit of the properties in the last of them.
const PROFILED: u64 = (queue::PROFILED as u64) << (8 * ((queue::PROPERTIES - queue::READ_DISPATCH_ID) % 8));

/// Remembers what an object led to. A function of its own, to save stack: see [`Ring::read`].
#[inline(never)]
pub fn remember(current: &Current, place: u64, ring: &Ring, epoch: u64) {
    let key = key(place, current.tgid);
    // In place: an entry that is inserted again frees its former memory at once, for another object.
    let Some(entry) = OBJECTS.get_ptr_mut(key).or_else(|| insert(key)) else {
        // Without room, the next doorbell reads everything again.
        return;
    };
    // Another program may be using the entry. It must see a change of the tag first, and again last.
    // SAFETY: a map value stays valid for the program's run; plain integers.
    unsafe {
        addr_of_mut!((*entry).tag).write_volatile(0);
        addr_of_mut!((*entry).queue).write_volatile(ring.queue);
        addr_of_mut!((*entry).base).write_volatile(ring.base);
        addr_of_mut!((*entry).read_index).write_volatile(ring.read_index);
        addr_of_mut!((*entry).size).write_volatile(ring.size);
        addr_of_mut!((*entry).generation).write_volatile(current.generation);
        addr_of_mut!((*entry).profiled).write_volatile(u64::from(signals::is_profiled(ring.queue)));
        addr_of_mut!((*entry).tag).write_volatile(tag(place, epoch));
    }
}

/// Inserts an entry that has no tag yet.
#[inline(always)]
fn insert(key: ObjectKey) -> Option<*mut Known> {
    // Another program may be faster.
    let _ = OBJECTS.insert(key, Known::NONE, NO_EXIST);
    OBJECTS.get_ptr_mut(key)
}

#[inline(always)]
fn key(place: u64, tgid: u32) -> ObjectKey {
    ObjectKey {
        place,
        tgid: u64::from(tgid),
    }
}

/// Records the doorbell if it is a usual one, and returns its time. 0: nothing was recorded.
#[inline(always)]
pub fn ring_next(place: u64, epoch: u64, task: u64, site: u32, value: u64) -> u64 {
    try_ring_next(place, epoch, task, site, value).unwrap_or(0)
}

#[inline(always)]
fn try_ring_next(place: u64, epoch: u64, task: u64, site: u32, value: u64) -> Option<u64> {
    let known = OBJECTS.get_ptr_mut(key(place, (task >> 32) as u32))?;
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    let known = unsafe { &mut *known };
    let tag = tag(place, epoch);
    if !known.is(tag) {
        return None;
    }
    let queue = QueueKey {
        queue: known.queue,
        tgid: (task >> 32) as u32,
        generation: known.generation,
    };
    let walked = QUEUES.get_ptr_mut(queue)?;
    // SAFETY: as above.
    let walked = unsafe { &mut *walked };
    let size = u64::from(known.size);
    let first = walked.low;
    // The slots belong to these packets, and not to packets that the GPU has yet to take.
    let is_own = value < known.read_index.wrapping_add(size);
    if walked.copied != first || walked.max != first || value < first || !is_own {
        return None;
    }
    let run = Run {
        known,
        tag,
        first,
        value,
        count: value - first + 1,
        task,
        site,
    };
    const SINGLE: usize = NEXT_DOORBELLS[0];
    const SOME: usize = NEXT_DOORBELLS[1];
    const MANY: usize = NEXT_DOORBELLS[2];
    let (time_ns, read_index) = match (
        run.count <= SINGLE as u64,
        run.count <= SOME as u64,
        run.known.profiled != 0,
    ) {
        (true, _, false) => run.record::<SINGLE, 0>(),
        (true, _, true) => run.record::<SINGLE, SINGLE>(),
        (_, true, false) => run.record::<SOME, 0>(),
        (_, true, true) => run.record::<SOME, SOME>(),
        (_, _, false) => run.record::<MANY, 0>(),
        (_, _, true) => None,
    }?;
    let next = value.wrapping_add(1);
    known.read_index = read_index;
    walked.low = next;
    walked.copied = next;
    // Another program may have noted more in between: a published index stays published.
    if walked.max < next {
        walked.max = next;
    }
    Some(time_ns)
}

/// The packets of a usual doorbell.
struct Run<'a> {
    known: &'a Known,
    tag: u64,
    first: u64,
    value: u64,
    count: u64,
    task: u64,
    site: u32,
}

impl Run<'_> {
    /// Records the doorbell with its packets, of which there are at most `N`, and the stamps of `S` of them. Returns its time, and the read index after the copy.
    #[inline(always)]
    fn record<const N: usize, const S: usize>(&self) -> Option<(u64, u64)> {
        let (known, size, count) = (self.known, u64::from(self.known.size), self.count);
        let slot = self.first & size.wrapping_sub(1);
        // A run must not cross the ring's end.
        if count > N as u64 || slot + count > size {
            return None;
        }
        // Without room, the walk finds none either, and counts it.
        let mut entry = EVENTS.reserve::<NextDoorbell<N, S>>(0)?;
        let record = entry.as_mut_ptr();
        // Before the reads: an index that is read later was at least this at that time.
        // SAFETY: a helper without preconditions.
        let time_ns = unsafe { bpf_ktime_get_ns() };
        // SAFETY: `packets` has room for `N` packets.
        let packets: *mut Packet = unsafe { addr_of_mut!((*record).packets).cast() };
        let address = known.base.wrapping_add(slot * PACKET_LEN as u64);
        // SAFETY: a field of the reserved entry, and as above. The verifier must bound the length, and it knows nothing of a count
        // that is read back: see `walk_record`.
        let copied = unsafe {
            addr_of_mut!((*record).count).write_volatile(count as u32);
            let opaque = if N == 1 {
                1
            } else {
                addr_of_mut!((*record).count).read_volatile()
            };
            opaque <= N as u32 && user::copy(packets.cast(), opaque * PACKET_LEN as u32, address)
        };
        // The read index is read first: it is never above a write index that is read later.
        let words: Option<[u64; WORDS]> = user::read(known.queue.wrapping_add(queue::READ_DISPATCH_ID as u64));
        let write_index = known.queue.wrapping_add(queue::WRITE_DISPATCH_ID as u64);
        // SAFETY: a field of the reserved entry.
        let has_write_index = unsafe { user::copy(addr_of_mut!((*record).write_index).cast(), 8, write_index) };
        let (true, Some(words), true) = (copied, words, has_write_index) else {
            entry.discard(NO_WAKEUP);
            return None;
        };
        let read_index = words[0];
        let mut is_valid = true;
        for i in 0..N {
            // SAFETY: below `N`; the packets up to `count` were written by the copy.
            is_valid &= i as u64 >= count || unsafe { (*packets.add(i)).bytes[0] } != packet_type::INVALID;
        }
        // A slot is reused only after its packet was taken.
        let is_reused = read_index > self.first;
        let profiled = words[WORDS - 1] & PROFILED != 0;
        if !is_valid || is_reused || (profiled && S == 0) {
            entry.discard(NO_WAKEUP);
            return None;
        }
        let mut ready = 0;
        if profiled {
            // SAFETY: as above; `stamps` has room for `S`.
            let stamps: *mut Stamps = unsafe { addr_of_mut!((*record).stamps).cast() };
            for i in 0..S {
                let slot = address.wrapping_add((i * PACKET_LEN) as u64);
                // SAFETY: below `S`, which is at most `N`; the packets up to `count` were written by the copy.
                if (i as u64) < count && unsafe { stamps::copy(slot, packets.add(i), stamps.add(i)) } {
                    ready |= 1 << i;
                }
            }
        }
        let header = Header {
            kind: kind::NEXT_DOORBELL,
            flags: ready,
            site: self.site,
            time_ns,
            tgid: (self.task >> 32) as u32,
            tid: self.task as u32,
        };
        // SAFETY: `record` is the reserved entry. Every field is written, except the packets past `count` and the stamps that are not ready.
        unsafe {
            addr_of_mut!((*record).header).write(header);
            addr_of_mut!((*record).queue).write(known.queue);
            addr_of_mut!((*record).value).write(self.value);
            addr_of_mut!((*record).read_index).write(read_index);
            addr_of_mut!((*record).size).write(known.size);
            addr_of_mut!((*record).call).write(api::open_call_of(self.task));
        }
        // What was read of the entry was this object's.
        if !known.is(self.tag) {
            entry.discard(NO_WAKEUP);
            return None;
        }
        entry.submit(NO_WAKEUP);
        Some((time_ns, read_index))
    }
}
