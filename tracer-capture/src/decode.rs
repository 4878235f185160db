//! Turns ring buffer records into events. It draws no conclusions, and allocates nothing except what [`fetch`] copies: long
//! batches, and memory that was not resident.

pub(crate) mod api;
mod driver;
pub mod fetch;
mod queues;
mod sdma;

use tracer_common::{
    aql::{PACKET_LEN, Packet},
    queue,
    record::{self, Header, PACKETS_PER_RECORD, Stamps, doorbell_flags, ioctl_flags, kind, reserve_op, task_op},
};
use tracer_core::event::{Before, Doorbell, Event, Ioctl, Origin, Packets, Reserve, ReserveOp, There};

use crate::complete;
pub use crate::probes::driver::Functions;
use fetch::Fetch;

/// Plain records: any bytes are a valid value.
///
/// # Safety
/// Implement it only for `repr(C)` structs of integers and byte arrays.
unsafe trait Record: Copy {}

macro_rules! records {
    ($($name:ident,)*) => {
        $(
            // SAFETY: `repr(C)`, integers and byte arrays.
            unsafe impl Record for record::$name {}
        )*
    };
}

records! {
    Header, Doorbell, Packets, Ioctl, Reserve, Task, Hold, SdmaDoorbell,
    RingJob, DriverCall, DriverEvent, Progress, HsaQueue, Signals, ApiCall, StackSample,
}

// SAFETY: `repr(C)`, integers and byte arrays.
unsafe impl<const N: usize, const S: usize> Record for record::NextDoorbell<N, S> {}

fn view<T: Record>(bytes: &[u8]) -> Option<&T> {
    let aligned = bytes.as_ptr().cast::<T>().is_aligned();
    // SAFETY: long enough, aligned, and any bytes are a valid `T`; the borrow is that of `bytes`.
    (bytes.len() >= size_of::<T>() && aligned).then(|| unsafe { &*bytes.as_ptr().cast::<T>() })
}

/// Returns the [`record::Hold`] in `bytes`.
#[must_use]
pub fn hold(bytes: &[u8]) -> Option<record::Hold> {
    view::<record::Hold>(bytes)
        .filter(|hold| hold.header.kind == kind::HOLD)
        .copied()
}

/// Returns the [`record::StackSample`] in `bytes`.
pub(crate) fn stack(bytes: &[u8]) -> Option<&record::StackSample> {
    view(bytes)
}

pub(crate) fn origin(header: &Header) -> Origin {
    Origin {
        time_ns: header.time_ns,
        pid: header.tgid,
        tid: header.tid,
    }
}

/// Returns the bytes before the first 0.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Turns one record into its events; `memory` copies data that is not in the record. Returns `false` for a record that this build
/// does not know (object and binary differ).
pub fn record(bytes: &[u8], functions: &Functions, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) -> bool {
    let Some(header) = view::<Header>(bytes) else {
        return false;
    };
    let done = match header.kind {
        kind::DOORBELL => view(bytes).map(|r| doorbell(r, memory, sink)),
        kind::NEXT_DOORBELL => next_doorbell(bytes, sink),
        kind::PACKETS => view(bytes).map(|r| packets(r, sink)),
        kind::IOCTL => view(bytes).map(|r| ioctl(r, sink)),
        kind::RESERVE => view(bytes).map(|r| reserve(r, sink)),
        kind::TASK => view(bytes).map(|r| task(r, sink)),
        kind::DRIVER_CALL => view(bytes).and_then(|r| driver::call(r, functions, sink)),
        kind::DRIVER_EVENT => view(bytes).and_then(|r| driver::event(r, sink)),
        kind::RING_JOB => view(bytes).map(|r| driver::ring_job(r, sink)),
        kind::API_CALL => view(bytes).and_then(|r| api::call(r, sink)),
        kind::SDMA_DOORBELL => view(bytes).map(|r| sdma::doorbell(r, memory, sink)),
        kind::PROGRESS => view(bytes).map(|r| queues::progress(r, sink)),
        kind::HSA_QUEUE => view(bytes).map(|r| queues::hsa_queue(r, sink)),
        kind::SIGNALS => view(bytes).map(|r| queues::signals(r, sink)),
        _ => None,
    };
    done.is_some()
}

fn doorbell(r: &record::Doorbell, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
    let has = |flag| r.header.flags & flag != 0;
    let mut walk = Packets {
        origin: origin(&r.header),
        handle: r.queue,
        first: r.first,
        ring_packets: r.size,
        read_index: r.read_index,
        write_index: r.limit,
        value: r.value,
        call: api::in_call(r.call),
        packets: std::slice::from_ref(&r.packet),
        ready: r.ready,
        stamps: std::slice::from_ref(&r.stamps),
        before: before(r.rung_end, r.value, r.read_index),
        proxy: is_proxy(&r.header),
    };
    if r.count == 1 {
        sink(&Event::Packets(walk));
        walk.first = walk.first.saturating_add(1);
    }
    if has(doorbell_flags::TRUNCATED) {
        continue_walk(r, walk, memory, sink);
    }
    sink(&Event::Doorbell(Doorbell {
        origin: walk.origin,
        handle: r.queue,
        value: r.value,
        first: r.first,
        end: r.end,
        read_index: r.read_index,
        write_index: r.write_index,
        ring_base: r.base,
        ring_packets: r.size,
        unreadable: has(doorbell_flags::UNREADABLE),
        beyond: has(doorbell_flags::BEYOND),
        proxy: walk.proxy,
        rung_end: walk.before.map(|before| before.rung_end),
    }));
}

fn next_doorbell(bytes: &[u8], sink: &mut impl FnMut(&Event<'_>)) -> Option<()> {
    const SINGLE: usize = record::NEXT_DOORBELLS[0];
    const SOME: usize = record::NEXT_DOORBELLS[1];
    const MANY: usize = record::NEXT_DOORBELLS[2];
    let r: &record::NextDoorbell<0, 0> = view(bytes)?;
    let count = r.count as usize;
    let packets: &[Packet] = if count <= SINGLE {
        &view::<record::NextDoorbell<SINGLE, 0>>(bytes)?.packets
    } else if count <= SOME {
        &view::<record::NextDoorbell<SOME, 0>>(bytes)?.packets
    } else {
        &view::<record::NextDoorbell<MANY, 0>>(bytes)?.packets
    };
    let packets = packets.get(..count)?;
    let ready = u64::from(r.header.flags);
    let stamps: &[Stamps] = if ready == 0 {
        &[]
    } else if count <= SINGLE {
        &view::<record::NextDoorbell<SINGLE, SINGLE>>(bytes)?.stamps
    } else {
        &view::<record::NextDoorbell<SOME, SOME>>(bytes)?.stamps
    };
    let origin = origin(&r.header);
    let end = r.value.saturating_add(1);
    let first = end.checked_sub(u64::from(r.count))?;
    sink(&Event::Packets(Packets {
        origin,
        handle: r.queue,
        first,
        ring_packets: r.size,
        // A lower bound would do: the program has checked that the slots belong to the packets.
        read_index: r.read_index,
        write_index: r.write_index.min(r.read_index.saturating_add(u64::from(r.size))),
        value: r.value,
        call: api::in_call(r.call),
        packets,
        ready,
        stamps,
        before: before(first, r.value, r.read_index),
        proxy: false,
    }));
    sink(&Event::Doorbell(Doorbell {
        origin,
        handle: r.queue,
        value: r.value,
        first,
        end,
        read_index: r.read_index,
        write_index: r.write_index,
        ring_base: 0,
        ring_packets: r.size,
        unreadable: false,
        beyond: false,
        proxy: false,
        rung_end: Some(first),
    }));
    Some(())
}

/// Returns whether a doorbell's record, or a walk's, is of a proxy.
fn is_proxy(header: &Header) -> bool {
    header.flags & doorbell_flags::PROXY != 0
}

fn before(rung_end: u64, value: u64, read_index: u64) -> Option<Before> {
    (rung_end != record::UNKNOWN).then_some(Before {
        rung_end,
        value,
        read_index,
    })
}

/// Packets that are fetched at once.
const AT_ONCE: usize = 256;

/// Reads the packets that the program's walk could not read: in pages that were not resident, or beyond its bound. The indexes
/// around each read show whether a slot still belonged to its packet; the model leaves out the packets whose slot did not.
///
/// `walk` is the walk so far; its `first` is the first packet to read.
fn continue_walk(r: &record::Doorbell, walk: Packets<'_>, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
    if r.size == 0 || !r.size.is_power_of_two() || r.size > queue::MAX_PACKETS {
        return;
    }
    let index = |offset: usize| r.queue.wrapping_add(offset as u64);
    let mut first = walk.first;
    let (mut slots, mut earlier) = ([Packet::ZERO; AT_ONCE], [Packet::ZERO; AT_ONCE]);
    while first < r.end {
        let slot = first & u64::from(r.size - 1);
        let count = (r.end - first).min(AT_ONCE as u64).min(u64::from(r.size) - slot) as usize;
        let (Some(slots), Some(earlier)) = (slots.get_mut(..count), earlier.get_mut(..count)) else {
            return;
        };
        let (mut read_index, mut write_index) = ([0; 8], [0; 8]);
        let address = r.base.wrapping_add(slot * PACKET_LEN as u64);
        let wanted = &mut [
            (index(queue::READ_DISPATCH_ID), &mut read_index[..]),
            (address, bytes_of(earlier)),
            (address, bytes_of(slots)),
            (index(queue::WRITE_DISPATCH_ID), &mut write_index[..]),
        ];
        if !memory.fetch(r.header.tgid, wanted) {
            return;
        }
        complete::keep_headers(slots, earlier);
        for packets in slots.chunks(PACKETS_PER_RECORD) {
            sink(&Event::Packets(Packets {
                first,
                read_index: u64::from_ne_bytes(read_index),
                write_index: u64::from_ne_bytes(write_index),
                packets,
                // The packets may have completed in between.
                ready: 0,
                stamps: &[],
                ..walk
            }));
            first += packets.len() as u64;
        }
    }
}

/// Returns the memory of packets.
pub(crate) fn bytes_of(packets: &mut [Packet]) -> &mut [u8] {
    // SAFETY: a Packet is 64 bytes without padding, for which any value is valid.
    unsafe { std::slice::from_raw_parts_mut(packets.as_mut_ptr().cast(), size_of_val(packets)) }
}

fn packets(r: &record::Packets, sink: &mut impl FnMut(&Event<'_>)) {
    let packets = r.packets.get(..r.count as usize).unwrap_or(&r.packets);
    if r.header.flags & doorbell_flags::TAKEN != 0 {
        let indexes = (r.read_index, r.limit);
        let taken = Packets::of_slots(origin(&r.header), r.queue, r.size, indexes, r.first, packets);
        return sink(&Event::Taken(taken));
    }
    sink(&Event::Packets(Packets {
        origin: origin(&r.header),
        handle: r.queue,
        first: r.first,
        ring_packets: r.size,
        read_index: r.read_index,
        write_index: r.limit,
        value: r.value,
        call: api::in_call(r.call),
        packets,
        ready: r.ready,
        stamps: &r.stamps,
        before: before(r.rung_end, r.value, r.read_index),
        proxy: is_proxy(&r.header),
    }));
}

fn ioctl(r: &record::Ioctl, sink: &mut impl FnMut(&Event<'_>)) {
    let flags = r.header.flags;
    let len = (r.len as usize).min(r.arg_in.len());
    let bytes = |bytes, unreadable| (flags & unreadable == 0).then_some(bytes);
    sink(&Event::Ioctl(Ioctl {
        origin: origin(&r.header),
        exit_ns: r.exit_ns,
        fd: r.fd,
        cmd: r.cmd,
        ret: (flags & ioctl_flags::NEVER_RETURNED == 0).then_some(r.ret),
        arg_in: bytes(&r.arg_in[..len], ioctl_flags::IN_UNREADABLE),
        arg_out: bytes(&r.arg_out[..len], ioctl_flags::OUT_UNREADABLE),
    }));
}

fn reserve(r: &record::Reserve, sink: &mut impl FnMut(&Event<'_>)) {
    let op = match r.header.flags {
        reserve_op::ADD => ReserveOp::Add { n: r.arg },
        reserve_op::STORE => ReserveOp::Store { to: r.arg },
        _ => ReserveOp::Cas {
            from: r.arg,
            to: r.arg2,
        },
    };
    let write_index = (r.write_index != u64::MAX).then_some(r.write_index);
    sink(&Event::Reserve(Reserve {
        origin: origin(&r.header),
        handle: r.queue,
        op,
        write_index,
    }));
}

fn task(r: &record::Task, sink: &mut impl FnMut(&Event<'_>)) {
    let origin = origin(&r.header);
    let comm = text(&r.comm);
    sink(&match r.header.flags {
        task_op::FORK => Event::Fork(origin, r.child),
        task_op::EXEC => Event::Exec(origin, comm),
        // A process creates no queue before its first ioctl of the KFD.
        task_op::ENTERED => Event::There(There {
            origin,
            comm,
            queues: &[],
            idle: true,
        }),
        _ => Event::Exit(origin),
    });
}

#[cfg(test)]
mod tests;
