//! Copies of packets that their producers may be writing.
//!
//! A producer writes a packet's header last. A copy that has the header need not have the rest: the kernel copies by `rep movsb`,
//! and processors read the halves of a packet in either order. So packets of other threads are copied twice. A packet that was valid
//! at the first copy is complete at the second.
//!
//! The packet at a doorbell's value needs one copy only: the thread knows that it is published.

use core::{
    arch::asm,
    ptr::{addr_of, addr_of_mut},
};

use tracer_common::{
    aql::{PACKET_LEN, Packet, packet_type},
    record::{PACKETS_PER_RECORD, Packets},
};

use crate::user;

/// Copies `count` packets from the slots at `address` into the record. A packet that was not yet valid at the first copy has the type
/// INVALID. Returns whether the slots could be read. Changes `count` and `ready` of the record.
///
/// # Safety
/// `record` must be a reserved entry. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy(record: *mut Packets, count: u32, address: u64) -> bool {
    // SAFETY: fields of the reserved entry, and packets below the number for which it has room.
    unsafe {
        let packets: *mut Packet = addr_of_mut!((*record).packets).cast();
        // Kept there, because there is no stack.
        let valid = addr_of_mut!((*record).ready);
        if !copy_once(record, count, address) {
            return false;
        }
        valid.write_volatile(valid_of::<PACKETS_PER_RECORD>(packets));
        if !copy_once(record, count, address) {
            return false;
        }
        let seen = valid.read_volatile();
        for i in 0..PACKETS_PER_RECORD {
            let kind = addr_of_mut!((*packets.add(i)).bytes[0]);
            kind.write_volatile(valid_if(seen >> i & 1, kind.read_volatile()));
        }
    }
    true
}

/// Copies the packets once.
///
/// # Safety
/// See [`copy`].
#[inline(always)]
unsafe fn copy_once(record: *mut Packets, count: u32, address: u64) -> bool {
    // The verifier must bound the length of the copy. It knows nothing about the contents of the record, so a count that is read
    // back from there is bounded by the test alone, and the walk's own numbers have no consequence for it. Otherwise the verifier
    // checks every way to reach them.
    // SAFETY: fields of the reserved entry. `packets` has room for PACKETS_PER_RECORD packets.
    unsafe {
        addr_of_mut!((*record).count).write_volatile(count);
        let opaque = addr_of_mut!((*record).count).read_volatile();
        opaque <= PACKETS_PER_RECORD as u32
            && user::copy(
                addr_of_mut!((*record).packets).cast(),
                opaque * PACKET_LEN as u32,
                address,
            )
    }
}

/// Copies one packet from the slot at `address`, as [`copy`] does.
///
/// # Safety
/// `packet` must be valid for writes. The verifier checks this too.
#[inline(always)]
pub unsafe fn copy_single(packet: *mut Packet, address: u64) -> bool {
    let Some(seen) = user::read::<u64>(address) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        let is_copied = user::copy(packet.cast(), PACKET_LEN as u32, address);
        let kind = addr_of_mut!((*packet).bytes[0]);
        kind.write_volatile(valid_if(is_valid(seen as u8), kind.read_volatile()));
        is_copied
    }
}

/// Returns bit `i` for each valid packet `i` of `N`.
///
/// # Safety
/// `packets` must be valid for reads of `N` packets. The verifier checks this too.
#[inline(always)]
pub unsafe fn valid_of<const N: usize>(packets: *const Packet) -> u64 {
    let mut valid = 0;
    for i in 0..N {
        // SAFETY: the caller's promise.
        valid |= is_valid(unsafe { addr_of!((*packets.add(i)).bytes[0]).read_volatile() }) << i;
    }
    valid
}

/// Returns 1 if the first byte of a packet is that of a valid one, and 0 if not.
///
/// Without branches: the verifier would follow each combination of their outcomes, for all packets.
#[inline(always)]
fn is_valid(first_byte: u8) -> u64 {
    let mut other = u64::from(first_byte ^ packet_type::INVALID);
    // SAFETY: an addition, which the compiler does not look into: it would make a branch of it.
    unsafe { asm!("{0} += 255", inout(reg) other, options(nomem, nostack, pure)) };
    other >> 8
}

/// Returns the first byte of a packet if `valid` is 1, and INVALID if it is 0.
#[inline(always)]
fn valid_if(valid: u64, first_byte: u8) -> u8 {
    let invalid = packet_type::INVALID;
    invalid ^ (first_byte ^ invalid) & valid.wrapping_neg() as u8
}
