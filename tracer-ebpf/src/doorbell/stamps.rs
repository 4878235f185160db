//! Completion signals of the packets that a doorbell publishes: their contents at that moment.
//!
//! The GPU writes the times of a packet into its completion signal. A runtime reuses signals. So when a packet is published, its
//! signal contains the times of the packet that used the signal before, and later contents can be distinguished from these.

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

/// One copy takes both stamps.
const _: () = assert!(SIGNAL_END == SIGNAL_START + 8 && size_of::<Stamps>() == 16);

/// Copies the content of the completion signal of the packet in a slot. Returns whether it is ready: see `Packets::ready`. The
/// queue must be profiled.
///
/// # Safety
/// `packet` must be valid for reads, and `to` for writes. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy(slot: u64, packet: *const Packet, to: *mut Stamps) -> bool {
    // SAFETY: the caller guarantees both.
    unsafe {
        let signal = (*packet).completion_signal();
        if signal == 0 {
            return false;
        }
        // Directly into the record, because there is no stack left below a walk.
        let address = |offset: usize| signal.wrapping_add(offset as u64);
        user::read::<i64>(address(SIGNAL_VALUE)) == Some(1)
            && user::copy(to.cast(), size_of::<Stamps>() as u32, address(SIGNAL_START))
            // Otherwise another thread had published the packet, and it may have completed before its signal was read.
            && is_valid(slot)
    }
}

/// Copies the content of the completion signal of the single packet of a doorbell's record, if its queue is profiled.
///
/// A function of its own, to save stack: see `Ring::read`.
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

/// Returns whether the packet in a slot has not been taken yet. The read is as wide as a signal's value, so that both use one place
/// on the stack.
#[inline(always)]
fn is_valid(slot: u64) -> bool {
    user::read::<i64>(slot).is_some_and(|word| word as u8 != packet_type::INVALID)
}

/// A record, and the slot of its first packet.
struct Run {
    record: *mut Packets,
    address: u64,
}

/// Copies the contents of the completion signals of the first `count` packets of a record, which are in the ring from `address` on.
///
/// A loop of the kernel, because the verifier would check every combination of packets with and without a signal.
///
/// # Safety
/// `record` must be a reserved entry, with its packets and `ready` written.
#[inline(always)]
pub unsafe fn copy_all(record: *mut Packets, count: u32, address: u64) {
    let mut run = Run { record, address };
    let context: *mut c_void = core::ptr::from_mut(&mut run).cast();
    // SAFETY: the callback receives this `Run`, which outlives the call.
    unsafe { bpf_loop(count, copy_one as *mut c_void, context, 0) };
}

/// Handles the next packet of the record; a callback of `bpf_loop`.
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
