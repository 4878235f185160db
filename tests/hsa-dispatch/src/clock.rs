//! Time: `CLOCK_MONOTONIC`, the clock of tracer's events.

use std::time::Duration;

/// Returns `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A time by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: u64,
}

impl Deadline {
    /// Returns the deadline that is `timeout` from now.
    #[must_use]
    pub fn after(timeout: Duration) -> Self {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Self {
            at: now().saturating_add(timeout),
        }
    }

    /// Returns whether the deadline has passed.
    #[must_use]
    pub fn passed(self) -> bool {
        now() >= self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes() {
        assert!(Deadline::after(Duration::ZERO).passed());
        assert!(!Deadline::after(Duration::from_secs(60)).passed());
        assert!(!Deadline::after(Duration::MAX).passed());
    }
}
