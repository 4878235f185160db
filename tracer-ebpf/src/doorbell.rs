//! AQL doorbells: uprobes in the functions of `AqlQueue` that store to a doorbell.
//!
//! The store itself comes some instructions later, so the packets that it publishes are still in the ring. The program copies them
//! here, because the GPU may consume them a moment later. With several producers, a slot below the value may not be written yet.
//! The walk starts again at that slot at the queue's next doorbell.

mod by_signal;
mod complete;
mod object;
mod ring;
mod stamps;
mod walk;
mod walked;

use aya_ebpf::{
    EbpfContext,
    bindings::pt_regs,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, generated::bpf_get_attach_cookie},
    macros::uprobe,
    programs::ProbeContext,
};
use core::ptr::{addr_of, addr_of_mut};
use tracer_common::record::{Doorbell, Header, LossSource, UNKNOWN, doorbell_flags as flag, gate, kind};

pub use self::walked::{QueueKey, published};
use self::{ring::At, walk::Walk, walked::Extent};

use crate::{
    api,
    maps::{Current, EVENTS, NO_WAKEUP, WAKEUP, begin_epoch, gate_word, lose},
    stacks,
};

/// Starts a new queue. Its packets are walked from its first index.
#[inline(always)]
pub fn begin_queue(current: Current, queue: u64) {
    let unwalked = Extent {
        low: 0,
        copied: 0,
        max: 0,
    };
    // SAFETY: a helper without preconditions.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    walked::begin_new(&QueueKey::of(current, queue), &unwalked, now_ns);
    // Also if the queue got no place: objects may lead to an earlier queue at this address.
    begin_epoch();
}

/// A doorbell, as the registers and the probe describe it.
struct Rung {
    /// Address of the pointer to the `amd_signal_t`.
    place: u64,
    value: u64,
    site: u32,
    /// The thread: see `bpf_get_current_pid_tgid`.
    task: u64,
    /// See [`gate::EPOCH`].
    epoch: u64,
}

impl Rung {
    #[inline(always)]
    fn read(ctx: &ProbeContext, gate: u64) -> Self {
        // SAFETY: fields of the registers, which the context points to. The helper's only precondition is a valid context, and this
        // is one.
        let (this, value, cookie) = unsafe {
            (
                addr_of!((*ctx.regs).rdi).read_volatile(),
                addr_of!((*ctx.regs).rsi).read_volatile(),
                bpf_get_attach_cookie(ctx.as_ptr()),
            )
        };
        Self {
            place: this.wrapping_add_signed(i64::from((cookie >> 32) as i32)),
            value,
            site: cookie as u32,
            task: bpf_get_current_pid_tgid(),
            epoch: gate & !(gate::EPOCH - 1),
        }
    }
}

/// Attach cookie: the site's number in its lower half, the displacement from `rdi` of the pointer to the `amd_signal_t` in its
/// upper half.
#[uprobe]
pub fn doorbell(ctx: ProbeContext) -> u32 {
    let gate = gate_word();
    if gate & gate::COUNTS == 0 {
        return 0;
    }
    match object::ring_next(&Rung::read(&ctx, gate)) {
        0 => unusual(&ctx),
        time_ns => stacks::take(ctx.regs, time_ns),
    }
    0
}

/// Walks a doorbell that is not a usual one.
///
/// Reads the registers again: the verifier then knows the same about them after each way in which a doorbell is not a usual one, and
/// follows the walk once.
#[inline(always)]
fn unusual(ctx: &ProbeContext) {
    let rung = Rung::read(ctx, gate_word());
    if let Some(current) = Current::traced_of(rung.task) {
        capture(
            current,
            rung.site,
            At::Pointer(rung.place),
            rung.value,
            ctx.regs,
            rung.epoch,
        );
    }
}

#[inline(always)]
fn capture(current: Current, site: u32, at: At, value: u64, regs: *const pt_regs, epoch: u64) {
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    let mut walk = Walk::by(current, time_ns, value);
    if let At::Proxy(_) = at {
        walk.flags = flag::PROXY;
    }
    let is_read = walk.ring.read(at);
    let key = QueueKey::of(current, walk.ring.queue);
    if is_read {
        match walked::find(&key).and_then(|(ticket, walked)| walked.read(ticket)) {
            Some((extent, _)) => {
                walk.low = extent.low;
                walk.copied = extent.copied;
                walk.rung_end = extent.max;
            }
            None => {
                // Nothing before this moment is claimed. The packets that the GPU has not consumed yet can be read.
                let read_index = walk.ring.read_index;
                walk.low = if read_index < value { read_index } else { value };
                walk.copied = walk.low;
                walk.flags |= flag::ADOPTED;
            }
        }
        walk.begin();
        if !walk.is_empty() && !walk.is_single() {
            walk.copy_packets();
        }
    } else {
        diagnose!(
            "process {}: doorbell {} of a queue that can't be read, site {}",
            current.tgid,
            value,
            site
        );
        // It is still a doorbell.
        walk.flags |= flag::UNREADABLE;
        walk.rung_end = UNKNOWN;
    }
    submit(&mut walk, current, current.header(kind::DOORBELL, 0, site, time_ns));
    if !is_read {
        return;
    }
    // After the packets: the copy takes time, and the GPU may consume them.
    stacks::take(regs, time_ns);
    let mut max = walk.rung_end_after(value);
    if walk.rung_end != UNKNOWN && max < walk.rung_end {
        max = walk.rung_end;
    }
    let now = Extent {
        low: walk.low,
        copied: walk.copied,
        max,
    };
    let Some((ticket, walked)) = walked::find_or_begin(&key, &now, time_ns) else {
        return;
    };
    walked.note(ticket, &now, walk.ring.read_index, time_ns);
    if let At::Pointer(place) = at {
        object::remember(&current, place, &walk.ring, epoch, ticket);
    }
}

/// Submits the doorbell's record. A walk of one packet is done here, into the record itself.
#[inline(always)]
fn submit(walk: &mut Walk, current: Current, mut header: Header) {
    let Some(mut entry) = EVENTS.reserve::<Doorbell>(0) else {
        // The queue's next walk starts at the same index, so its packets are not lost with this record.
        lose(LossSource::DoorbellRing, 1);
        walk.low = walk.first;
        return;
    };
    let record = entry.as_mut_ptr();
    let (mut count, mut limit, mut ready) = (0, 0, 0);
    if walk.is_single() {
        let slot = walk.ring.slot(walk.first);
        // SAFETY: the packet's place in the reserved entry.
        let copied = unsafe { complete::copy_single(addr_of_mut!((*record).packet), slot) };
        if let (true, Some(now)) = (copied, walk.ring.limit_now()) {
            (count, limit) = (1, now);
            walk.copied = walk.end;
            // SAFETY: the packet was written by the copy.
            let first_byte = unsafe { (*record).packet.bytes[0] };
            if walk.ring.is_final(walk.first, first_byte, limit) {
                walk.low = walk.first.wrapping_add(1);
            }
            // The GPU runs no packet from a proxy.
            if walk.flags & flag::PROXY == 0 {
                // SAFETY: the reserved entry, whose packet is written.
                ready = unsafe { stamps::copy_single(walk.ring.queue, slot, record) };
            }
        } else {
            walk.flags |= flag::TRUNCATED;
        }
    }
    header.flags = walk.flags;
    // SAFETY: `record` is the reserved entry. Every field except the packet and the stamps is written here. These count only if
    // `count` and `ready` say so.
    unsafe {
        addr_of_mut!((*record).header).write(header);
        addr_of_mut!((*record).queue).write(walk.ring.queue);
        addr_of_mut!((*record).value).write(walk.value);
        addr_of_mut!((*record).first).write(walk.first);
        addr_of_mut!((*record).end).write(walk.end);
        addr_of_mut!((*record).write_index).write(walk.ring.write_index);
        addr_of_mut!((*record).read_index).write(walk.ring.read_index);
        addr_of_mut!((*record).limit).write(limit);
        addr_of_mut!((*record).base).write(walk.ring.base);
        addr_of_mut!((*record).size).write(walk.ring.size);
        addr_of_mut!((*record).count).write(count);
        addr_of_mut!((*record).ready).write(ready);
        addr_of_mut!((*record).rung_end).write(walk.rung_end);
        addr_of_mut!((*record).call).write(api::open_call(current));
    }
    // User space reads the rest of the packets.
    let is_whole = walk.flags & flag::TRUNCATED == 0;
    entry.submit(if is_whole { NO_WAKEUP } else { WAKEUP });
}
