//! SDMA doorbells: uprobes in the functions of `BlitSdma` that store to the doorbell of an SDMA user queue.
//!
//! At that time the commands are in the ring, and the engine may take them the moment after the store. The program copies them
//! here, because the process may exit before user space could read them.

use aya_ebpf::{
    EbpfContext,
    helpers::{bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::{map, uprobe},
    maps::LruHashMap,
    programs::ProbeContext,
};
use core::ptr::addr_of_mut;
use tracer_common::record::{LossSource, SDMA_COMMANDS_LEN, SdmaDoorbell, doorbell_flags, kind};

use crate::{
    api,
    doorbell::QueueKey,
    maps::{Current, EVENTS, NO_WAKEUP, WAKEUP, lose},
    user,
};

/// A ring of commands.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ring {
    base: u64,
    /// A power of two.
    bytes: u64,
}

/// Rings by the addresses of their write pointers, from CREATE_QUEUE.
#[map]
static SDMA_RINGS: LruHashMap<QueueKey, Ring> = LruHashMap::with_max_entries(4096, 0);

/// Notes that an SDMA queue was created.
#[inline(always)]
pub fn begin_queue(current: Current, write_pointer: u64, base: u64, bytes: u64) {
    let ring = if bytes != 0 && bytes & (bytes - 1) == 0 {
        Ring { base, bytes }
    } else {
        Ring { base: 0, bytes: 0 }
    };
    if SDMA_RINGS
        .insert(QueueKey::of(current, write_pointer), ring, 0)
        .is_err()
    {
        lose(LossSource::QueueMap, 1);
    }
}

/// Entry: `rdi` is the BlitSdma, `rsi` the current index, `rdx` the new one (bytes).
///
/// Attach cookie: the site's number in its lower half; above it 16 bits for the displacement from `rdi` of the write pointer's
/// address, and 16 for the width of the ring's indexes in bits.
#[uprobe]
pub fn sdma_doorbell(ctx: ProbeContext) -> u32 {
    if let (Some(current), Some(this), Some(begin), Some(end)) = (
        Current::counted(),
        ctx.arg::<u64>(0),
        ctx.arg::<u64>(1),
        ctx.arg::<u64>(2),
    ) {
        // SAFETY: the helpers' only precondition is a valid context, and this is one.
        let (cookie, time_ns) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), bpf_ktime_get_ns()) };
        let pointer: Option<u64> = user::read(this.wrapping_add_signed(i64::from((cookie >> 32) as i16)));
        let flags = if pointer.is_none() {
            doorbell_flags::UNREADABLE
        } else {
            0
        };
        let pointer = pointer.unwrap_or(0);
        let mut ring = Ring { base: 0, bytes: 0 };
        // How narrower indexes wrap around is not known.
        if cookie >> 48 == 64 {
            // SAFETY: two words, which are written only when a queue is created.
            if let Some(known) = unsafe { SDMA_RINGS.get(QueueKey::of(current, pointer)) } {
                ring = *known;
            }
        }
        let Some(mut entry) = EVENTS.reserve::<SdmaDoorbell>(0) else {
            lose(LossSource::SdmaRing, 1);
            return 0;
        };
        let record = entry.as_mut_ptr();
        // SAFETY: `record` is the reserved entry. Every field except the commands past `len` is written.
        let is_whole = unsafe {
            addr_of_mut!((*record).header).write(current.header(kind::SDMA_DOORBELL, flags, cookie as u32, time_ns));
            addr_of_mut!((*record).write_pointer).write(pointer);
            addr_of_mut!((*record).begin).write(begin);
            addr_of_mut!((*record).end).write(end);
            addr_of_mut!((*record).ring_base).write(ring.base);
            addr_of_mut!((*record).ring_bytes).write(ring.bytes);
            addr_of_mut!((*record).pad).write(0);
            addr_of_mut!((*record).call).write(api::open_call(current));
            copy(record, &ring, begin, end)
        };
        entry.submit(if is_whole { NO_WAKEUP } else { WAKEUP });
    }
    0
}

/// Copies as many commands as fit, and stores their number of bytes. Returns whether user space needs to read no others.
///
/// # Safety
/// `record` must be the reserved entry.
#[inline(always)]
unsafe fn copy(record: *mut SdmaDoorbell, ring: &Ring, begin: u64, end: u64) -> bool {
    let size = end.wrapping_sub(begin);
    let at = begin & ring.bytes.wrapping_sub(1);
    // The runtime pads a ring to its end rather than split a submission there.
    let there = ring.bytes != 0 && size <= ring.bytes - at;
    let mut len = if there { size } else { 0 };
    if len > SDMA_COMMANDS_LEN as u64 {
        len = SDMA_COMMANDS_LEN as u64;
    }
    // SAFETY: fields of the reserved entry. The length is read back, so that the verifier knows nothing about it except the bound
    // that is tested here.
    unsafe {
        addr_of_mut!((*record).len).write_volatile(len as u32);
        let opaque = addr_of_mut!((*record).len).read_volatile();
        let copied = opaque <= SDMA_COMMANDS_LEN as u32
            && user::copy(
                addr_of_mut!((*record).commands).cast(),
                opaque,
                ring.base.wrapping_add(at),
            );
        if !copied {
            addr_of_mut!((*record).len).write_volatile(0);
        }
    }
    len == size || len == 0
}
