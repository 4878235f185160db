//! Last samples of completion signals: the times of the packets that ran last on a queue, read by a thread that ends it.
//!
//! A signal that is used again is read at the doorbell of the new packet, and user space reads the signals that wait for long. The
//! last packets of a queue remain: they are still in its ring, with the handles of their signals.

use core::{ffi::c_void, ptr::addr_of_mut};

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_loop};
use tracer_common::{
    aql::{COMPLETION_SIGNAL, PACKET_LEN},
    queue::{self, SIGNAL_END, SIGNAL_START, SIGNAL_VALUE},
    record::{LossSource, SIGNALS_PER_RECORD, SignalState, Signals, Stamps, kind},
};

use crate::{
    maps::{Current, EVENTS, NO_WAKEUP, lose},
    user,
};

/// The number of sampled runs of slots: the last 64 packets, and the rest of the oldest one's run.
const RUNS: u32 = 5;
/// Slots of a run.
const RUN: u64 = SIGNALS_PER_RECORD as u64;
/// One read takes both stamps.
const _: () = assert!(SIGNAL_END == SIGNAL_START + 8);

/// A queue whose last packets are sampled.
struct Last {
    current: Current,
    base: u64,
    /// Slots of the ring, minus one.
    mask: u64,
    /// Index of the first packet of the youngest run.
    youngest: u64,
}

/// A run of slots, and the record for their signals.
struct Run {
    record: *mut Signals,
    address: u64,
    found: u64,
}

/// Samples the signals of the last packets of a queue whose `amd_queue_t` is at `queue`, and whose write index is known.
#[inline(never)]
pub fn look(current: &Current, queue: u64, write_index: u64) {
    // The GPU writes no times into the signals of a queue that is not profiled.
    if !is_profiled(queue) {
        return;
    }
    let (Some(base), Some(size)) = (
        user::read::<u64>(queue.wrapping_add(queue::BASE_ADDRESS as u64)),
        user::read::<u32>(queue.wrapping_add(queue::SIZE as u64)),
    ) else {
        return;
    };
    let small = size < SIGNALS_PER_RECORD as u32;
    if write_index == 0 || small || size > queue::MAX_PACKETS || size & (size - 1) != 0 {
        return;
    }
    let mut last = Last {
        current: *current,
        base,
        mask: u64::from(size - 1),
        youngest: (write_index - 1) & !(RUN - 1),
    };
    let this: *mut c_void = core::ptr::from_mut(&mut last).cast();
    // SAFETY: the callback receives this `Last`, which outlives the call.
    unsafe { bpf_loop(RUNS, look_at_run as *mut c_void, this, 0) };
}

/// Returns whether the GPU writes times into the signals of a queue's packets, unless the program changes that.
#[inline(always)]
pub fn is_profiled(queue: u64) -> bool {
    let properties = user::read::<u32>(queue.wrapping_add(queue::PROPERTIES as u64));
    properties.is_some_and(|properties| properties & queue::PROFILED != 0)
}

/// Samples the run that is `age` runs older than the youngest. A callback of `bpf_loop`; 1 ends the loop.
extern "C" fn look_at_run(age: u32, last: *mut c_void) -> i64 {
    // SAFETY: `look` passes its Last.
    let last = unsafe { &*last.cast::<Last>() };
    let back = u64::from(age) * RUN;
    if back > last.youngest || back > last.mask {
        return 1;
    }
    let Some(mut entry) = EVENTS.reserve::<Signals>(0) else {
        lose(LossSource::ProgressRing, 1);
        return 1;
    };
    let slot = (last.youngest - back) & last.mask;
    let mut run = Run {
        record: entry.as_mut_ptr(),
        address: last.base.wrapping_add(slot * PACKET_LEN as u64),
        found: 0,
    };
    // SAFETY: a helper without preconditions.
    let time_ns = unsafe { bpf_ktime_get_ns() };
    let this: *mut c_void = core::ptr::from_mut(&mut run).cast();
    // SAFETY: the callback receives this `Run`, which outlives the call.
    unsafe { bpf_loop(SIGNALS_PER_RECORD as u32, look_at_one as *mut c_void, this, 0) };
    if run.found == 0 {
        entry.discard(NO_WAKEUP);
        return 0;
    }
    let record = entry.as_mut_ptr();
    // SAFETY: `record` is the reserved entry, whose signals are written; a helper without preconditions.
    unsafe {
        addr_of_mut!((*record).header).write(last.current.header(kind::SIGNALS, 0, 0, time_ns));
        addr_of_mut!((*record).after_ns).write(bpf_ktime_get_ns());
    }
    entry.submit(NO_WAKEUP);
    0
}

/// Samples the next slot of the run; a callback of `bpf_loop`.
extern "C" fn look_at_one(index: u32, run: *mut c_void) -> i64 {
    let i = index as usize;
    if i >= SIGNALS_PER_RECORD {
        return 1;
    }
    // SAFETY: `look_at_run` passes its Run.
    let run = unsafe { &mut *run.cast::<Run>() };
    let state = state(run.address.wrapping_add(i as u64 * PACKET_LEN as u64));
    if state.signal != 0 {
        run.found = 1;
    }
    // SAFETY: a place in the reserved entry, since `i` is below the array's length.
    unsafe {
        let signals: *mut SignalState = addr_of_mut!((*run.record).signals).cast();
        signals.add(i).write(state);
    }
    0
}

/// Returns the state of the completion signal of the packet in a slot.
#[inline(always)]
fn state(slot: u64) -> SignalState {
    match user::read::<u64>(slot.wrapping_add(COMPLETION_SIGNAL as u64)).and_then(read) {
        Some(state) => state,
        None => SignalState {
            signal: 0,
            value: 0,
            stamps: Stamps { start: 0, end: 0 },
        },
    }
}

/// Reads the state of a completion signal; `None` if there is no signal, or it could not be read.
#[inline(always)]
fn read(signal: u64) -> Option<SignalState> {
    if signal == 0 {
        return None;
    }
    // Two separate reads, because a copy has no order.
    let value: i64 = user::read(signal.wrapping_add(SIGNAL_VALUE as u64))?;
    let [start, end]: [u64; 2] = user::read(signal.wrapping_add(SIGNAL_START as u64))?;
    Some(SignalState {
        signal,
        value,
        stamps: Stamps { start, end },
    })
}
