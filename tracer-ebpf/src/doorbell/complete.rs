//! Copies of packets that their producers may be writing.
//!
//! A producer writes a packet's header last. A copy that has the header need not have the rest: the kernel copies by `rep movsb`,
//! and processors read the halves of a packet in either order. So packets of other threads are copied twice, and the result has the
//! headers of the first copy. If such a header is valid, the second copy has the rest. The GPU may take the packet in between: it
//! sets the header to INVALID and leaves the rest. If a header was not yet valid, a later walk reads the packet again.
//!
//! A single packet at the doorbell's own value needs one copy. This assumes that a thread rings with the index of a packet that it
//! knows to be published, as the HSA specification demands.

use core::{
    arch::asm,
    ptr::{addr_of, addr_of_mut},
};

use tracer_common::{
    aql::{PACKET_LEN, Packet, packet_type},
    record::{PACKETS_PER_RECORD, Packets, Stamps},
};

use crate::user;

/// The header of a packet: its first two bytes.
type Head = u16;

/// Copies `count` packets from the slots at `address` into the record. Returns whether the slots could be read. Changes `count` and
/// `stamps` of the record.
///
/// # Safety
/// `record` must be a reserved entry. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy(record: *mut Packets, count: u32, address: u64) -> bool {
    // SAFETY: fields of the reserved entry, and packets and stamps below the number for which it has room. What follows the packets
    // up to `count` is left over from other records, and means nothing.
    unsafe {
        let packets: *mut Packet = addr_of_mut!((*record).packets).cast();
        let count_at = addr_of_mut!((*record).count);
        let copy_once = || copy_once::<PACKETS_PER_RECORD>(packets, count_at, count, address);
        // Kept there until the stamps are written, because there is no stack.
        let heads: *mut Stamps = addr_of_mut!((*record).stamps).cast();
        if !copy_once() {
            return false;
        }
        for i in 0..PACKETS_PER_RECORD {
            let head: *const Head = packets.add(i).cast();
            heads.add(i).cast::<Head>().write_volatile(head.read_volatile());
        }
        if !copy_once() {
            return false;
        }
        for i in 0..PACKETS_PER_RECORD {
            let head: *const Head = heads.add(i).cast();
            packets.add(i).cast::<Head>().write_volatile(head.read_volatile());
        }
    }
    true
}

/// Copies `count` packets, at most `N`, from the slots at `address`, once. Writes `count` to `count_at`. Returns whether there is room
/// for them and the slots could be read.
///
/// # Safety
/// `packets` must be valid for writes of `N` packets, and `count_at` for reads and writes. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy_once<const N: usize>(packets: *mut Packet, count_at: *mut u32, count: u32, address: u64) -> bool {
    // The verifier must bound the length of the copy. It knows nothing about the contents of a record, so a count that is read back
    // from there is bounded by the test alone, and the caller's own numbers have no consequence for it. Otherwise the verifier checks
    // every way to reach them.
    // SAFETY: the caller's promise.
    unsafe {
        count_at.write_volatile(count);
        let opaque = if N == 1 { 1 } else { count_at.read_volatile() };
        opaque <= N as u32 && user::copy(packets.cast(), opaque * PACKET_LEN as u32, address)
    }
}

/// Copies one packet from the slot at `address`, as [`copy`] does.
///
/// # Safety
/// `packet` must be valid for writes. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy_single(packet: *mut Packet, address: u64) -> bool {
    let Some(first) = user::read::<u64>(address) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        let is_copied = user::copy(packet.cast(), PACKET_LEN as u32, address);
        packet.cast::<Head>().write_volatile(first as Head);
        is_copied
    }
}

/// Returns bit `i` for each valid packet `i` of `N`.
///
/// Without branches: the verifier would follow each combination of their outcomes, for all packets.
///
/// # Safety
/// `packets` must be valid for reads of `N` packets. The verifier checks this too.
#[inline(always)]
pub unsafe fn valid_of<const N: usize>(packets: *const Packet) -> u64 {
    let mut valid = 0;
    for i in 0..N {
        // SAFETY: the caller's promise.
        let first_byte = unsafe { addr_of!((*packets.add(i)).bytes[0]).read_volatile() };
        let mut other = u64::from(first_byte ^ packet_type::INVALID);
        // SAFETY: an addition, which the compiler does not look into: it would make a branch of it.
        unsafe { asm!("{0} += 255", inout(reg) other, options(nomem, nostack, pure)) };
        // 0 only for INVALID.
        valid |= (other >> 8) << i;
    }
    valid
}
