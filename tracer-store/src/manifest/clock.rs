//! Clocks, to convert times of a trace to those of other tools.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The clocks of the system at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSnapshot {
    /// Wall clock, RFC 3339 in UTC, for people.
    pub time: String,
    /// CLOCK_MONOTONIC, the clock of every time in the tables.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME: like monotonic, and continues during suspend.
    pub boottime_ns: u64,
    /// CLOCK_REALTIME since 1970.
    pub realtime_ns: u64,
    /// Time from the first to the last clock's reading: the maximum distance between them.
    #[serde(default)]
    pub spread_ns: u64,
}

impl ClockSnapshot {
    /// Reads the clocks several times, and returns the closest readings.
    #[must_use]
    pub fn now() -> Self {
        let readings = (0..5).map(|_| {
            let before = read(ClockId::Monotonic);
            let (boottime, realtime) = (read(ClockId::Boottime), read(ClockId::Realtime));
            let spread = read(ClockId::Monotonic).saturating_sub(before);
            (spread, before + spread / 2, boottime, realtime)
        });
        let (spread_ns, monotonic_ns, boottime_ns, realtime_ns) = readings.min().unwrap_or_default();
        Self {
            time: rfc3339(realtime_ns),
            monotonic_ns,
            boottime_ns,
            realtime_ns,
            spread_ns,
        }
    }
}

fn read(clock: ClockId) -> u64 {
    let time = Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Formats a CLOCK_REALTIME reading as RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn rfc3339(realtime_ns: u64) -> String {
    let milliseconds = realtime_ns / 1_000_000;
    let seconds = milliseconds / 1000;
    let (year, month, day) = civil(seconds / 86400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        milliseconds % 1000
    )
}

/// Returns year, month and day of a day since 1970-01-01. Years are counted from March, so that a leap day is the last one.
const fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468; // from 0000-03-01
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let day_of_era = days % DAYS_IN_400_YEARS;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = days / DAYS_IN_400_YEARS * 400 + year_of_era + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_equal_the_output_of_date() {
        // date -u -d @N --rfc-3339=seconds
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_767_225_600, "2026-01-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), expected);
        }
        assert_eq!(rfc3339(1_999_999), "1970-01-01T00:00:00.001Z");
    }

    #[test]
    fn clocks_go_forward() {
        let (first, second) = (ClockSnapshot::now(), ClockSnapshot::now());
        assert!(0 < first.monotonic_ns && first.monotonic_ns <= second.monotonic_ns);
        assert!(first.boottime_ns <= second.boottime_ns);
    }
}
