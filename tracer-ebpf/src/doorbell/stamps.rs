//! Completion signals of the packets that a doorbell publishes: what they hold as that happens.
//!
//! The GPU writes the times of a packet into its completion signal. A runtime uses a signal again and again, so what it
//! holds when a packet is published are the times of what used it before; and what it holds later can be told from that.

use core::{
    ffi::c_void,
    ptr::{addr_of, addr_of_mut},
};

use aya_ebpf::helpers::generated::bpf_loop;
use tracer_common::{
    aql::{PACKET_LEN, Packet, packet_type},
    queue::{SIGNAL_END, SIGNAL_START, SIGNAL_VALUE},
    record::{Doorbell, PACKETS_PER_RECORD, Packets, Stamps},
};

use crate::{signals, user};

/// One copy takes both.
const _: () = assert!(SIGNAL_END == SIGNAL_START + 8 && size_of::<Stamps>() == 16);

/// Copies what the completion signal of the packet in a slot holds; whether that is ready: see `Packets::ready`. The queue is
/// profiled.
///
/// # Safety
/// `packet` must be valid for reads, and `to` for writes. The verifier checks it too.
#[inline(always)]
pub unsafe fn copy(slot: u64, packet: *const Packet, to: *mut Stamps) -> bool {
    // SAFETY: the caller vouches for both.
    unsafe {
        let signal = (*packet).completion_signal();
        if signal == 0 {
            return false;
        }
        // Straight into the record: below a walk no more stack is left.
        let address = |offset: usize| signal.wrapping_add(offset as u64);
        user::read::<i64>(address(SIGNAL_VALUE)) == Some(1)
            && user::copy(to.cast(), size_of::<Stamps>() as u32, address(SIGNAL_START))
            // Else another thread had published it, and it may have ended before its signal was read.
            && is_valid(slot)
    }
}

/// The same for the one packet of a doorbell's record, if its queue is profiled.
///
/// A function of its own, for the stack's sake: see `Ring::read`.
///
/// # Safety
/// `record` must be a reserved entry, with its packet written.
#[inline(never)]
pub unsafe fn copy_single(queue: u64, slot: u64, record: *mut Doorbell) -> u64 {
    if !signals::is_profiled(queue) {
        return 0;
    }
    // SAFETY: places in the reserved entry.
    u64::from(unsafe { copy(slot, addr_of!((*record).packet), addr_of_mut!((*record).stamps)) })
}

/// Whether the packet in a slot has not been taken yet. As wide as a signal's value: then both use one place on the stack.
#[inline(always)]
fn is_valid(slot: u64) -> bool {
    user::read::<i64>(slot).is_some_and(|word| word as u8 != packet_type::INVALID)
}

/// A record, and the slot of its first packet.
struct Run {
    record: *mut Packets,
    address: u64,
}

/// The same for the first `count` packets of a record, which lie in the ring from `address` on.
///
/// A loop of the kernel's, because the verifier would look at every combination of packets that have a signal and that
/// have none.
///
/// # Safety
/// `record` must be a reserved entry, with its packets and `ready` written.
#[inline(always)]
pub unsafe fn copy_all(record: *mut Packets, count: u32, address: u64) {
    let mut run = Run { record, address };
    let context: *mut c_void = core::ptr::from_mut(&mut run).cast();
    // SAFETY: the callback gets this very `Run`, which outlives the call.
    unsafe { bpf_loop(count, copy_one as *mut c_void, context, 0) };
}

/// A callback of `bpf_loop`: the next packet of the record.
extern "C" fn copy_one(index: u32, run: *mut c_void) -> i64 {
    let i = index as usize;
    if i >= PACKETS_PER_RECORD {
        return 1;
    }
    // SAFETY: `copy_all` passes its Run, with a reserved entry; `i` is below the length of both arrays.
    unsafe {
        let run = &*run.cast::<Run>();
        let record = run.record;
        let slot = run.address.wrapping_add(i as u64 * PACKET_LEN as u64);
        let packets: *mut Packet = addr_of_mut!((*record).packets).cast();
        let stamps: *mut Stamps = addr_of_mut!((*record).stamps).cast();
        if copy(slot, packets.add(i), stamps.add(i)) {
            let ready = addr_of_mut!((*record).ready);
            ready.write(ready.read() | 1 << i);
        }
    }
    0
}
