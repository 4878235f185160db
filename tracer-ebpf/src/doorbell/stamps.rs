//! Completion signals of the packets that a doorbell publishes: what they hold as that happens.
//!
//! The GPU writes the times of a packet into its completion signal. A runtime uses a signal again and again, so what it
//! holds when a packet is published are the times of what used it before; and what it holds later can be told from that.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::helpers::generated::bpf_loop;
use tracer_common::{
    aql::Packet,
    queue::{PROFILED, PROPERTIES, SIGNAL_END, SIGNAL_START, SIGNAL_VALUE},
    record::{PACKETS_PER_RECORD, Packets, Stamps},
};

use crate::user;

/// One copy takes both.
const _: () = assert!(SIGNAL_END == SIGNAL_START + 8 && size_of::<Stamps>() == 16);

/// Copies what the completion signal of a packet on a queue holds; whether that is ready: see `Packets::ready`.
///
/// # Safety
/// `packet` must be valid for reads, and `to` for writes. The verifier checks it too.
#[inline(always)]
pub unsafe fn copy(queue: u64, packet: *const Packet, to: *mut Stamps) -> bool {
    // SAFETY: the caller vouches for both.
    unsafe {
        let signal = (*packet).completion_signal();
        if signal == 0 || !is_profiled(queue) {
            return false;
        }
        // Straight into the record: below a walk no more stack is left.
        let address = |offset: usize| signal.wrapping_add(offset as u64);
        user::read::<i64>(address(SIGNAL_VALUE)) == Some(1)
            && user::copy(to.cast(), size_of::<Stamps>() as u32, address(SIGNAL_START))
    }
}

/// Whether the GPU writes times into signals, as long as the program doesn't change that.
#[inline(always)]
fn is_profiled(queue: u64) -> bool {
    user::read::<u32>(queue.wrapping_add(PROPERTIES as u64)).is_some_and(|properties| properties & PROFILED != 0)
}

/// The same for the first `count` packets of a record.
///
/// A loop of the kernel's, because the verifier would look at every combination of packets that have a signal and that
/// have none.
///
/// # Safety
/// `record` must be a reserved entry, with its queue, its packets and `ready` written.
#[inline(always)]
pub unsafe fn copy_all(mut record: *mut Packets, count: u32) {
    let context: *mut c_void = core::ptr::from_mut(&mut record).cast();
    // SAFETY: the callback gets this very pointer, which outlives the call.
    unsafe { bpf_loop(count, copy_one as *mut c_void, context, 0) };
}

/// A callback of `bpf_loop`: the next packet of the record.
extern "C" fn copy_one(index: u32, record: *mut c_void) -> i64 {
    let i = index as usize;
    if i >= PACKETS_PER_RECORD {
        return 1;
    }
    // SAFETY: `copy_all` passes a pointer to a reserved entry; `i` is below the length of both arrays.
    unsafe {
        let record = *record.cast::<*mut Packets>();
        let packets: *mut Packet = addr_of_mut!((*record).packets).cast();
        let stamps: *mut Stamps = addr_of_mut!((*record).stamps).cast();
        if copy((*record).queue, packets.add(i), stamps.add(i)) {
            let ready = addr_of_mut!((*record).ready);
            ready.write(ready.read() | 1 << i);
        }
    }
    0
}
