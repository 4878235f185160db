//! Packets that the GPU took without a doorbell that a probe saw, copied when a thread ends their queue.
//!
//! The GPU invalidates the header of a packet that it takes, and leaves the body in the slot until a producer needs the slot again.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_loop};
use tracer_common::{
    aql::PACKET_LEN,
    queue,
    record::{Call, LossSource, PACKETS_PER_RECORD, Packets, UNKNOWN, doorbell_flags, kind},
};

use super::Place;
use crate::{
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    user,
};

/// Most records at the end of a queue: the last 1024 packets. The sampler has read earlier ones.
const MAX_RECORDS: u32 = 64;

/// Returns the number of packets in a ring of that size: a power of two, or 0 if the size is impossible.
#[inline(always)]
pub fn packets(ring_bytes: u32) -> u64 {
    let packets = ring_bytes / PACKET_LEN as u32;
    if packets & packets.wrapping_sub(1) == 0 && packets <= queue::MAX_OWN_PACKETS {
        u64::from(packets)
    } else {
        0
    }
}

/// The copies of one queue. Words only, to save stack.
struct Copies<'a> {
    current: &'a Current,
    entry: *mut Place,
    read_index: u64,
    next: u64,
}

/// Copies the packets below `read_index` that no doorbell published, from `rung_end` on. A function of its own, to save stack.
#[inline(never)]
pub fn copy(current: &Current, entry: *mut Place, read_index: u64, rung_end: u64) {
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    let (size, below) = unsafe { ((*entry).ring_packets, (*entry).taken_below) };
    let most = u64::from(MAX_RECORDS) * PACKETS_PER_RECORD as u64;
    let mut next = read_index.saturating_sub(if size < most { size } else { most });
    if next < rung_end {
        next = rung_end;
    }
    if next < below {
        next = below;
    }
    if size == 0 || next >= read_index {
        return;
    }
    let mut copies = Copies {
        current,
        entry,
        read_index,
        next,
    };
    let this: *mut c_void = core::ptr::from_mut(&mut copies).cast();
    // SAFETY: the callback receives these `Copies`, which outlive the call.
    unsafe { bpf_loop(MAX_RECORDS, copy_record as *mut c_void, this, 0) };
    // SAFETY: as above. Threads that exit at the same time may each copy, and the model takes each packet once.
    unsafe { (*entry).taken_below = copies.next };
}

/// Copies the next packets into a record. A callback of `bpf_loop`; 1 ends the loop.
extern "C" fn copy_record(_: u32, copies: *mut c_void) -> i64 {
    // SAFETY: `copy` passes its Copies.
    let copies = unsafe { &mut *copies.cast::<Copies<'_>>() };
    let (next, read_index) = (copies.next, copies.read_index);
    if next >= read_index {
        return 1;
    }
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    let (ring, size, write_pointer, read_pointer) = unsafe {
        let entry = copies.entry;
        (
            (*entry).ring,
            (*entry).ring_packets,
            (*entry).write_pointer,
            (*entry).read_pointer,
        )
    };
    let slot = next & size.wrapping_sub(1);
    // A run must not cross the ring's end.
    let mut count = size.wrapping_sub(slot);
    if count > read_index - next {
        count = read_index - next;
    }
    if count > PACKETS_PER_RECORD as u64 {
        count = PACKETS_PER_RECORD as u64;
    }
    let Some(mut reserved) = EVENTS.reserve::<Packets>(0) else {
        lose(LossSource::PacketsRing, 1);
        return 1;
    };
    let record = reserved.as_mut_ptr();
    // SAFETY: a field of the reserved entry; `packets` has room for PACKETS_PER_RECORD packets. The verifier bounds the count by the
    // test alone, as in `doorbell::walk`.
    let copied = unsafe {
        addr_of_mut!((*record).count).write_volatile(count as u32);
        let opaque = addr_of_mut!((*record).count).read_volatile();
        opaque <= PACKETS_PER_RECORD as u32
            && user::copy(
                addr_of_mut!((*record).packets).cast(),
                opaque * PACKET_LEN as u32,
                ring.wrapping_add(slot.wrapping_mul(PACKET_LEN as u64)),
            )
    };
    // A producer that reserved beyond the ring waits.
    let indexes = (user::read::<u64>(write_pointer), user::read::<u64>(read_pointer));
    let (true, (Some(mut limit), Some(read_now))) = (copied, indexes) else {
        reserved.discard(NO_WAKEUP);
        return 1;
    };
    if limit > read_now.wrapping_add(size) {
        limit = read_now.wrapping_add(size);
    }
    // SAFETY: `record` is the reserved entry. Every field except the packets past `count` and the stamps is written; a helper
    // without preconditions.
    unsafe {
        let header = copies
            .current
            .header(kind::PACKETS, doorbell_flags::TAKEN, 0, bpf_ktime_get_ns());
        addr_of_mut!((*record).header).write(header);
        addr_of_mut!((*record).queue).write(write_pointer.wrapping_sub(queue::WRITE_DISPATCH_ID as u64));
        addr_of_mut!((*record).first).write(next);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).read_index).write(read_index);
        addr_of_mut!((*record).size).write(size as u32);
        addr_of_mut!((*record).ready).write(0);
        addr_of_mut!((*record).rung_end).write(UNKNOWN);
        addr_of_mut!((*record).value).write(UNKNOWN);
        addr_of_mut!((*record).call).write(Call::NONE);
    }
    reserved.submit(NO_WAKEUP);
    copies.next = next + count;
    0
}
