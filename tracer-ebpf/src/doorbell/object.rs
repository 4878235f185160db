//! The usual doorbell. Its few packets follow those of the queue's last doorbell.
//!
//! What the runtime's object led to at that doorbell is remembered, so that only the packets and the indexes are read. The object
//! leads to the same queue as long as it exists, and its memory can only become another queue's object before that queue is created.
//! So what was learned in an earlier epoch is learned again.

use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::map, maps::Array};
use core::ptr::{addr_of, addr_of_mut};
use tracer_common::{
    aql::{PACKET_LEN, Packet},
    queue,
    record::{Header, NEXT_DOORBELLS, NextDoorbell, Stamps, gate, kind},
};

use super::{
    Rung, complete,
    ring::Ring,
    stamps,
    walked::{self, Extent, Walked},
};
use crate::{
    api, atomic,
    maps::{Current, EVENTS, NO_WAKEUP},
    signals, user,
};

/// What an object led to.
#[repr(C)]
struct Known {
    /// The epoch in which that was learned, with [`LEARNED`] and [`VERSION`], or with [`CHANGING`].
    epoch: u64,
    /// See [`Object`].
    place: u64,
    tgid: u32,
    /// Packets in the ring.
    size: u32,
    queue: u64,
    base: u64,
    /// The ticket of the queue's state: see [`walked`].
    ticket: u64,
    /// Whether the queue was profiled then.
    profiled: u64,
}

/// Set while the entry changes. The lower bits of epochs are free: see [`gate::EPOCH`].
const CHANGING: u64 = 1;
/// Set in each epoch: an entry that was never written has none.
const LEARNED: u64 = 2;
/// The bits that count how often the entry was written.
const VERSION: u64 = gate::EPOCH - (LEARNED << 1);
/// One in the count.
const VERSION_STEP: u64 = LEARNED << 1;

/// Entries, a power of two.
const ENTRIES: u32 = 16 << 10;

/// What objects led to. An object has one of two entries, and objects that share them replace each other: then more doorbells are
/// walked, with the same result. A hash table would take five times as many instructions.
#[map(name = "QUEUE_OBJECTS")]
static OBJECTS: Array<Known> = Array::with_max_entries(ENTRIES, 0);

#[inline(always)]
fn entry(number: u32) -> Option<&'static mut Known> {
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    OBJECTS.get_ptr_mut(number).map(|entry| unsafe { &mut *entry })
}

/// An object of a process in an epoch. The object is named by the address in it at which the address of the queue's signal is.
#[derive(Clone, Copy)]
struct Object {
    place: u64,
    epoch: u64,
    tgid: u32,
}

impl Object {
    #[inline(always)]
    fn of(place: u64, epoch: u64, tgid: u32) -> Self {
        Self {
            place,
            epoch: epoch | LEARNED,
            tgid,
        }
    }

    /// Returns the number of the first of the two entries that the object may have.
    #[inline(always)]
    fn entries(self) -> u32 {
        let mixed = (self.place ^ u64::from(self.tgid) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - ENTRIES.ilog2())) as u32 & !1
    }

    /// Returns the epoch's word of the entry, if the entry is this object's, as learned in this epoch. As long as the word is the
    /// same, nothing in the entry changes.
    #[inline(always)]
    fn version(self, known: &Known) -> Option<u64> {
        let word = known.word();
        (word & !VERSION == self.epoch && self.owns(known)).then_some(word)
    }

    /// Returns whether the entry is this object's. Other programs may change it, so each call reads it.
    #[inline(always)]
    fn owns(self, known: &Known) -> bool {
        // SAFETY: fields of a valid value.
        unsafe {
            addr_of!(known.place).read_volatile() == self.place && addr_of!(known.tgid).read_volatile() == self.tgid
        }
    }
}

impl Known {
    /// Reads the epoch's word.
    #[inline(always)]
    fn word(&self) -> u64 {
        // SAFETY: a field of a valid value; other programs may change it.
        unsafe { addr_of!(self.epoch).read_volatile() }
    }
}

/// Returns what the object led to in this epoch, and the epoch's word of the entry.
#[inline(always)]
fn find(object: Object) -> Option<(&'static mut Known, u64)> {
    let first = object.entries();
    let known = entry(first)?;
    if let Some(word) = object.version(known) {
        return Some((known, word));
    }
    let known = entry(first | 1)?;
    let word = object.version(known)?;
    Some((known, word))
}

/// Words of an `amd_queue_t` from the write index to the properties, including both. One read takes all: it costs more in calls than in
/// bytes. It reads the words in no certain order, so the write index may be below the read index, but not if the producer reserved the
/// packets that it publishes: then it is above them, and the read index is not, or the doorbell is walked.
const WORDS: usize = (queue::PROPERTIES - queue::WRITE_DISPATCH_ID) / 8 + 1;
/// The number of the read index among them.
const READ_INDEX: usize = (queue::READ_DISPATCH_ID - queue::WRITE_DISPATCH_ID) / 8;
/// The bit of the properties in the last of them.
const PROFILED: u64 = (queue::PROFILED as u64) << (8 * ((queue::PROPERTIES - queue::WRITE_DISPATCH_ID) % 8));

/// Remembers what an object led to. A function of its own, to save stack: see [`Ring::read`].
#[inline(never)]
pub fn remember(current: &Current, place: u64, ring: &Ring, epoch: u64, ticket: u64) {
    let object = Object::of(place, epoch, current.tgid);
    let first = object.entries();
    let (Some(one), Some(other)) = (entry(first), entry(first | 1)) else {
        return;
    };
    let is_current = one.word() & !VERSION == object.epoch;
    let known = if object.owns(other) || (is_current && !object.owns(one)) {
        other
    } else {
        one
    };
    // SAFETY: fields of a valid value; plain integers. One program at a time writes the entry. Others that use it see that it
    // changes before they can see what it has.
    unsafe {
        let word = addr_of_mut!(known.epoch);
        let seen = word.read_volatile();
        if seen & CHANGING != 0 || atomic::swap(word, seen, seen | CHANGING) != seen {
            // The next doorbell tries again.
            return;
        }
        addr_of_mut!(known.place).write_volatile(place);
        addr_of_mut!(known.tgid).write_volatile(current.tgid);
        addr_of_mut!(known.size).write_volatile(ring.size);
        addr_of_mut!(known.queue).write_volatile(ring.queue);
        addr_of_mut!(known.base).write_volatile(ring.base);
        addr_of_mut!(known.ticket).write_volatile(ticket);
        addr_of_mut!(known.profiled).write_volatile(u64::from(signals::is_profiled(ring.queue)));
        word.write_volatile(object.epoch | seen.wrapping_add(VERSION_STEP) & VERSION);
    }
}

/// Records the doorbell if it is a usual one, and returns its time. 0: nothing was recorded.
#[inline(always)]
pub fn ring_next(rung: &Rung) -> u64 {
    try_ring_next(rung).unwrap_or(0)
}

#[inline(always)]
fn try_ring_next(
    &Rung {
        place,
        value,
        site,
        task,
        epoch,
    }: &Rung,
) -> Option<u64> {
    let object = Object::of(place, epoch, (task >> 32) as u32);
    let (known, version) = find(object)?;
    // Once each: another program may give the entry to another object, which is found out at the end.
    // SAFETY: fields of a valid value.
    let (ticket, queue, base, size, profiled) = unsafe {
        (
            addr_of!(known.ticket).read_volatile(),
            addr_of!(known.queue).read_volatile(),
            addr_of!(known.base).read_volatile(),
            u64::from(addr_of!(known.size).read_volatile()),
            addr_of!(known.profiled).read_volatile() != 0,
        )
    };
    let walked = walked::at(ticket)?;
    let (extent, read_index) = walked.read(ticket)?;
    let first = extent.low;
    // The slots belong to these packets, and not to packets that the GPU has yet to take.
    let is_own = value < read_index.wrapping_add(size);
    if extent.copied != first || extent.max != first || value < first || !is_own {
        return None;
    }
    let run = Run {
        known,
        version,
        walked,
        ticket,
        queue,
        base,
        size,
        first,
        value,
        count: value - first + 1,
        task,
        site,
    };
    const SINGLE: usize = NEXT_DOORBELLS[0];
    const SOME: usize = NEXT_DOORBELLS[1];
    const MANY: usize = NEXT_DOORBELLS[2];
    let (time_ns, read_index) = match (run.count <= SINGLE as u64, run.count <= SOME as u64, profiled) {
        (true, _, false) => run.record::<SINGLE, 0>(),
        (true, _, true) => run.record::<SINGLE, SINGLE>(),
        (_, true, false) => run.record::<SOME, 0>(),
        (_, true, true) => run.record::<SOME, SOME>(),
        (_, _, false) => run.record::<MANY, 0>(),
        (_, _, true) => None,
    }?;
    let next = value.wrapping_add(1);
    let now = Extent {
        low: next,
        copied: next,
        max: next,
    };
    walked.note(ticket, &now, read_index, time_ns);
    Some(time_ns)
}

/// The packets of a usual doorbell.
struct Run<'a> {
    known: &'a Known,
    version: u64,
    walked: *const Walked,
    ticket: u64,
    queue: u64,
    base: u64,
    size: u64,
    first: u64,
    value: u64,
    count: u64,
    task: u64,
    site: u32,
}

impl Run<'_> {
    /// Records the doorbell with its packets, of which there are at most `N`, and the stamps of `S` of them. Returns its time, and the
    /// read index after the copy.
    #[inline(always)]
    fn record<const N: usize, const S: usize>(&self) -> Option<(u64, u64)> {
        let (size, count) = (self.size, self.count);
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
        let address = self.base.wrapping_add(slot * PACKET_LEN as u64);
        // SAFETY: a field of the reserved entry, and as above.
        let copy =
            || unsafe { complete::copy_once::<N>(packets, addr_of_mut!((*record).count), count as u32, address) };
        let all = (1 << count) - 1;
        // SAFETY: as above. What follows the packets up to `count` was there before, and does not count.
        let is_valid = || unsafe { complete::valid_of::<N>(packets) } & all == all;
        // A single packet is the thread's own. Others may just be written: see `complete`.
        let copied = (N == 1 || copy() && is_valid()) && copy();
        let words: Option<[u64; WORDS]> = user::read(self.queue.wrapping_add(queue::WRITE_DISPATCH_ID as u64));
        let (true, Some(words)) = (copied, words) else {
            entry.discard(NO_WAKEUP);
            return None;
        };
        let read_index = words[READ_INDEX];
        // A slot is reused only after its packet was taken.
        let is_reused = read_index > self.first;
        let profiled = words[WORDS - 1] & PROFILED != 0;
        if !is_valid() || is_reused || (profiled && S == 0) {
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
            addr_of_mut!((*record).queue).write(self.queue);
            addr_of_mut!((*record).value).write(self.value);
            addr_of_mut!((*record).write_index).write(words[0]);
            addr_of_mut!((*record).read_index).write(read_index);
            addr_of_mut!((*record).size).write(size as u32);
            addr_of_mut!((*record).call).write(api::open_call_of(self.task));
        }
        // What was read of the entry was this object's, and what was read of the place was its queue's.
        // SAFETY: a map value stays valid for the program's run.
        let is_own = self.known.word() == self.version && unsafe { (*self.walked).is_of(self.ticket) };
        if !is_own {
            entry.discard(NO_WAKEUP);
            return None;
        }
        entry.submit(NO_WAKEUP);
        Some((time_ns, read_index))
    }
}
