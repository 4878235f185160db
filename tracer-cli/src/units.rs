//! Numbers in a form for people.

use std::time::Duration;

/// Formats a duration, given in ns, in the unit that keeps it short.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// Formats a size in bytes.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..0x10_0000 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1024.0 / 1024.0),
    }
}

/// Formats a number that may be unknown.
pub fn known(n: Option<u64>) -> String {
    n.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}

/// Parses a time as users write it: seconds, or a number with a unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let second = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit} is not a unit of time; use ms, s, m or h")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text} is not a time; write 10s or 500ms"))?;
    Duration::try_from_secs_f64(number * second)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("{text} is not longer than 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text| time(text).map(|time| time.as_millis());
        assert_eq!([ms("10"), ms("10s"), ms("1.5s")], [Ok(10_000), Ok(10_000), Ok(1_500)]);
        assert_eq!([ms("500ms"), ms("2m"), ms("1h")], [Ok(500), Ok(120_000), Ok(3_600_000)]);
        for wrong in ["", "s", "0", "-1", "10d", "1e300h", "ten"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(
            [duration(999), duration(1_500), duration(11_000_000)],
            ["999 ns", "1.5 us", "11.00 ms"]
        );
        assert_eq!([bytes(64), bytes(2048), bytes(3 << 20)], ["64 B", "2.0 KiB", "3.0 MiB"]);
        assert_eq!([known(None), known(Some(0))], ["unknown", "0"]);
    }
}
