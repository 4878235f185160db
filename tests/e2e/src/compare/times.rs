//! Times of dispatches by the GPU's clock: each equals what the device wrote.

use std::collections::BTreeMap;

use tracer_core::tables::{Dispatch, GpuTime, Queue};

use crate::{scenario::Run, truth};

/// Nanoseconds per tick of the simulated GPU's clock, which runs with `CLOCK_BOOTTIME`.
const TICK_NS: u64 = 10;

/// Time between two readings of clocks that is short enough, in ns.
const NEAR_NS: u64 = 2000;

/// Checks that every row of a queue is a dispatch of that queue, once, with the ticks that the device wrote; and that a dated row
/// is not further off than its stated error. Returns the number of rows, and how many of them are dated.
pub fn of_queue(run: &Run, truth: &truth::Queue, queue: &Queue) -> (usize, usize) {
    let dispatches: BTreeMap<u64, &Dispatch> = run
        .dispatches()
        .filter(|dispatch| dispatch.queue == queue.queue)
        .map(|dispatch| (dispatch.index, dispatch))
        .collect();
    let mut rows: BTreeMap<u64, &GpuTime> = BTreeMap::new();
    for time in run.gpu_times().filter(|time| time.queue == queue.queue) {
        assert!(rows.insert(time.index, time).is_none(), "twice: {time:?}");
    }
    for (index, time) in &rows {
        let dispatch = dispatches
            .get(index)
            .unwrap_or_else(|| panic!("no dispatch of {time:?}"));
        assert_eq!(
            truth.times.get(index),
            Some(&(time.start_ticks, time.end_ticks)),
            "{time:?}"
        );
        let same = |time: &GpuTime| (time.pid, time.time_ns, time.kernel_object, time.kernel.clone());
        let of_dispatch = (
            dispatch.pid,
            dispatch.time_ns,
            dispatch.kernel_object,
            dispatch.kernel.clone(),
        );
        assert_eq!(same(time), of_dispatch, "{time:?}");
        assert_eq!(time.gpu_id, Some(truth.gpu_id), "{time:?}");
        let dated = [time.start_ns, time.end_ns, time.clock_error_ns];
        let Some(error) = time.clock_error_ns else {
            assert_eq!(dated, [None; 3]);
            continue;
        };
        for (ns, ticks) in [(time.start_ns, time.start_ticks), (time.end_ns, time.end_ticks)] {
            let ns = ns.expect("dated as a whole");
            // A little time may pass between the two clocks, which this process reads one after the other.
            let off = ns.abs_diff(monotonic_ns(ticks * TICK_NS));
            assert!(off <= error + 20_000, "off by {off} ns: {time:?}");
        }
    }
    let dated = rows.values().filter(|time| time.start_ns.is_some()).count();
    (rows.len(), dated)
}

/// Converts a `CLOCK_BOOTTIME` time to `CLOCK_MONOTONIC`, in ns.
///
/// A reading of both clocks counts only if little time passed between them: this thread may lose its processor there.
#[must_use]
pub fn monotonic_ns(boottime_ns: u64) -> u64 {
    let readings = (0..1000).map(|_| {
        let before = read_ns(libc::CLOCK_BOOTTIME);
        let monotonic = read_ns(libc::CLOCK_MONOTONIC);
        let after = read_ns(libc::CLOCK_BOOTTIME);
        (after - before, before.midpoint(after), monotonic)
    });
    let mut best = (u64::MAX, 0, 0);
    for reading in readings {
        best = best.min(reading);
        if best.0 < NEAR_NS {
            break;
        }
    }
    let (_, boottime, monotonic) = best;
    (boottime_ns + monotonic).saturating_sub(boottime)
}

/// Reads a clock, in ns.
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0, "a clock that Linux has");
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
