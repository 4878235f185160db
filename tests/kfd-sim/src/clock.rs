//! The clocks that a client compares: `CLOCK_MONOTONIC` for the truth log, and the GPU's own counter.

/// Nanoseconds in one tick of the GPU counter: 100 MHz, as on every GPU simulated here.
pub const GPU_TICK_NS: u64 = 10;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the duration of the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns `CLOCK_MONOTONIC`, the clock of the truth log.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns `CLOCK_MONOTONIC_RAW`, KFD's "cpu clock counter".
pub fn raw_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// Returns `CLOCK_BOOTTIME`, KFD's "system clock counter".
pub fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Returns the GPU counter. It runs exactly with the system clock, so a runtime's translation of timestamps is exact too.
pub fn gpu_ticks() -> u64 {
    boottime_ns() / GPU_TICK_NS
}

/// Sets the timer slack to the minimum: the default of 50 us would double the time to notice a doorbell.
pub fn use_precise_naps() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_counter_runs_at_100_mhz() {
        let (ticks, ns) = (gpu_ticks(), boottime_ns());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, ns) = (gpu_ticks() - ticks, boottime_ns() - ns);
        assert!(
            (ticks * GPU_TICK_NS).abs_diff(ns) < 1_000_000,
            "{ticks} ticks in {ns} ns"
        );
    }
}
