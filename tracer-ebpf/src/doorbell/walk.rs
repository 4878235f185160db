//! The walk: which packets a doorbell makes worth reading, and their copies.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::helpers::generated::{bpf_loop, bpf_probe_read_kernel};
use tracer_common::{
    aql::Packet,
    queue,
    record::{LossSource, PACKETS_PER_RECORD, Packets, UNKNOWN, doorbell_flags as flag, kind},
};

use super::{complete, ring::Ring, stamps};
use crate::{
    api,
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    signals,
};

/// The longest walk at one doorbell, in records of `PACKETS_PER_RECORD` packets: the largest ring, plus a record or a step for each
/// range and for the ring's end. Packets beyond it are `TRUNCATED`.
const MAX_RECORDS: u32 = queue::MAX_PACKETS / PACKETS_PER_RECORD as u32 + 8;

/// Packets that a doorbell below the highest one reads again, up to its value. Its thread has just published them, and they were
/// not valid yet when the walk of a higher doorbell passed them.
const OWN: u64 = 16;

/// The indexes that a doorbell makes worth reading, and the progress of the reading.
///
/// With one producer that is one range, from the last doorbell's value on. With several, a slot below the highest doorbell may have
/// been copied before its producer had written it. To read everything again from the lowest such slot on would take a time that
/// grows with every doorbell while that producer does not run. So the walk reads three ranges: some packets from the lowest slot in
/// question on, at least as many as are new, so that this slot moves up sooner than the doorbells do; the packets that the thread
/// itself has published, if it rings late; and the new packets.
pub struct Walk {
    pub ring: Ring,
    current: Current,
    time_ns: u64,
    /// The value that the doorbell stores.
    pub value: u64,
    /// First index worth reading.
    pub first: u64,
    /// One past the last index worth reading.
    pub end: u64,
    /// First index that is not copied yet, of the range that ends at `stop`.
    next: u64,
    stop: u64,
    /// The range after that one; the last one begins at `copied`. There is no count of ranges, because the verifier would check
    /// each of its values separately.
    after: u64,
    after_stop: u64,
    /// Every lower index worth reading was copied, final or not.
    pub copied: u64,
    /// Every index from `first` up to this one is final.
    pub low: u64,
    /// See `Doorbell::rung_end`.
    pub rung_end: u64,
    /// `doorbell_flags`.
    pub flags: u16,
}

impl Walk {
    /// Starts a walk of a queue that is not read yet.
    #[inline(always)]
    pub fn by(current: Current, time_ns: u64, value: u64) -> Self {
        Self {
            ring: Ring::EMPTY,
            current,
            time_ns,
            value,
            first: 0,
            end: 0,
            next: 0,
            stop: 0,
            after: 0,
            after_stop: 0,
            copied: 0,
            low: 0,
            rung_end: UNKNOWN,
            flags: 0,
        }
    }

    /// Finds the ranges that the doorbell makes worth reading. The ring has been read, and `low`, `copied` and `rung_end` are those
    /// that earlier walks left.
    ///
    /// In place, and in a function of its own, to save stack: see [`Ring::read`].
    #[inline(never)]
    pub fn begin(&mut self) {
        let (ring, value) = (&self.ring, self.value);
        let size = u64::from(ring.size);
        let mut first = self.low;
        // A slot is reused only after its packet was consumed, and by a producer that reserved it. A producer that reserved beyond
        // the ring waits, and its reservation alone says nothing about slots.
        let mut oldest = ring.write_index.saturating_sub(size);
        if oldest > ring.read_index {
            oldest = ring.read_index;
        }
        if first < oldest {
            first = oldest;
            self.flags |= flag::LAPPED;
        }
        // One past the value; a value of all ones has no successor.
        let mut end = value.saturating_add(1);
        if end > first && end - first > size {
            end = ring.write_index;
            self.flags |= flag::BEYOND;
        }
        if self.rung_end != UNKNOWN && end < self.rung_end {
            end = self.rung_end;
        }
        if end < first {
            end = first;
        }
        if end - first > size {
            end = first + size;
        }
        let mut copied = self.copied;
        if copied < first {
            copied = first;
        }
        if copied > end {
            copied = end;
        }
        let mut stop = first
            .saturating_add(end - copied)
            .saturating_add(PACKETS_PER_RECORD as u64);
        if stop > copied {
            stop = copied;
        }
        let mut own_end = value.saturating_add(1);
        if own_end > copied {
            own_end = copied;
        }
        self.first = first;
        self.end = end;
        self.next = first;
        self.stop = stop;
        self.after = own_end.saturating_sub(OWN);
        self.after_stop = own_end;
        self.copied = copied;
        self.low = first;
    }

    /// Copies the walk's packets into records of their own.
    #[inline(always)]
    pub fn copy_packets(&mut self) {
        let this: *mut c_void = core::ptr::from_mut(self).cast();
        // The verifier tracks for every number here in which of many ways it came about, and would check the callback for each of
        // them. It knows nothing about memory that a helper has written. This helper copies the numbers onto themselves.
        // SAFETY: plain numbers, onto themselves.
        unsafe { bpf_probe_read_kernel(this, size_of::<Self>() as u32, this) };
        // SAFETY: the callback receives this `Walk`, which outlives the call.
        unsafe { bpf_loop(MAX_RECORDS, walk_record as *mut c_void, this, 0) };
        if !self.is_done() {
            self.flags |= flag::TRUNCATED;
        }
        if self.copied < self.next {
            self.copied = self.next;
        }
    }

    /// Returns one past the highest index that is published after this doorbell, at the least.
    #[inline(always)]
    pub fn rung_end_after(&self, value: u64) -> u64 {
        // A value that no producer reserved publishes the reserved packets.
        if self.flags & flag::BEYOND != 0 {
            self.end
        } else {
            value.saturating_add(1)
        }
    }

    /// Returns whether the walk is done. Only the last range ends where the walk ends, or the ranges after it are empty.
    #[inline(always)]
    fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// Returns whether the only work is to copy one new packet.
    #[inline(always)]
    pub fn is_single(&self) -> bool {
        self.first == self.copied && self.end == self.first.wrapping_add(1)
    }

    /// Returns whether nothing is worth reading.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Begins the next range, which may be empty. Leaves out indexes that an earlier range covered.
    #[inline(always)]
    fn begin_range(&mut self) {
        if self.next < self.after {
            self.next = self.after;
        }
        self.stop = self.after_stop;
        // The start of the last range, which changes only after all ranges.
        self.after = self.copied;
        self.after_stop = self.end;
    }
}

/// Copies the next packets of a [`Walk`] into a record of their own. A callback of `bpf_loop`; 1 ends the loop.
extern "C" fn walk_record(_: u32, walk: *mut c_void) -> i64 {
    // SAFETY: `copy_packets` passes its Walk.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if walk.next >= walk.stop {
        if walk.is_done() {
            return 1;
        }
        walk.begin_range();
        if walk.next >= walk.stop {
            return 0;
        }
    }
    let Some(mut entry) = EVENTS.reserve::<Packets>(0) else {
        lose(LossSource::PacketsRing, 1);
        return 1;
    };
    let record = entry.as_mut_ptr();
    // A run must not cross the ring's end.
    let to_end = u64::from(walk.ring.size) - (walk.next & u64::from(walk.ring.size - 1));
    let mut count = walk.stop - walk.next;
    if count > to_end {
        count = to_end;
    }
    if count > PACKETS_PER_RECORD as u64 {
        count = PACKETS_PER_RECORD as u64;
    }
    // SAFETY: `record` is the reserved entry.
    let copied = unsafe { complete::copy(record, count as u32, walk.ring.slot(walk.next)) };
    let (true, Some(limit)) = (copied, walk.ring.limit_now()) else {
        entry.discard(NO_WAKEUP);
        return 1;
    };
    // SAFETY: `record` is the reserved entry. Every field except the packets past `count` and the stamps is written.
    unsafe {
        addr_of_mut!((*record).header).write(walk.current.header(
            kind::PACKETS,
            walk.flags & flag::PROXY,
            0,
            walk.time_ns,
        ));
        addr_of_mut!((*record).queue).write(walk.ring.queue);
        addr_of_mut!((*record).first).write(walk.next);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).read_index).write(walk.ring.read_index);
        addr_of_mut!((*record).size).write(walk.ring.size);
        addr_of_mut!((*record).ready).write_volatile(0);
        addr_of_mut!((*record).rung_end).write(walk.rung_end);
        addr_of_mut!((*record).value).write(walk.value);
        addr_of_mut!((*record).call).write(api::open_call(walk.current));
    }
    let mut finals = Finals { walk, record };
    let context: *mut c_void = core::ptr::from_mut(&mut finals).cast();
    // A loop of the kernel: otherwise the verifier would check every number of packets after which this loop ends.
    // SAFETY: the callback receives these `Finals`, which outlive the call.
    unsafe { bpf_loop(count as u32, note_final as *mut c_void, context, 0) };
    let walk = finals.walk;
    // The GPU runs no packet from a proxy.
    if walk.flags & flag::PROXY == 0 && signals::is_profiled(walk.ring.queue) {
        // SAFETY: `record` is the reserved entry; the packets up to `count` were written by the copy.
        unsafe { stamps::copy_all(record, count as u32, walk.ring.slot(walk.next)) };
    }
    entry.submit(NO_WAKEUP);
    walk.next += count;
    0
}

/// A record whose packets are copied, and its walk. Two words only: kernels allow 512 bytes of stack for a chain of calls, and
/// count at least 32 for each, and Linux 6.1 counts this one.
struct Finals<'a> {
    walk: &'a mut Walk,
    /// With its packets and `limit` written.
    record: *mut Packets,
}

/// Raises the walk's `low` past the next packet of the record if that packet is final. A callback of `bpf_loop`; 1 ends the loop.
extern "C" fn note_final(at: u32, finals: *mut c_void) -> i64 {
    // SAFETY: `walk_record` passes its Finals.
    let finals = unsafe { &mut *finals.cast::<Finals>() };
    let i = at as usize;
    let index = finals.walk.next.wrapping_add(i as u64);
    // `low` stays at the lowest index that is not final.
    if i >= PACKETS_PER_RECORD || finals.walk.low != index {
        return 1;
    }
    // SAFETY: fields of the reserved entry. `i` is below PACKETS_PER_RECORD, and the loop ends at the last packet that was copied.
    let (first_byte, limit) = unsafe {
        let packets: *mut Packet = addr_of_mut!((*finals.record).packets).cast();
        ((*packets.add(i)).bytes[0], addr_of_mut!((*finals.record).limit).read())
    };
    if finals.walk.ring.is_final(index, first_byte, limit) {
        finals.walk.low = index.wrapping_add(1);
    }
    0
}
