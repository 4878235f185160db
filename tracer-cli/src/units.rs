//! Times that users write, and numbers that may be unknown.

use std::time::Duration;

/// Formats a value that may be unknown.
pub fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

/// Parses a time as users write it: seconds, or a number with a unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let second = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit} is not a unit of time; use ns, us, ms, s, m or h")),
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
        let ns = |text| time(text).map(|time| time.as_nanos());
        assert_eq!([ns("86399123456789ns"), ns("7us")], [Ok(86_399_123_456_789), Ok(7_000)]);
        for wrong in ["", "s", "0", "-1", "10d", "1e300h", "ten"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_numbers_are_words() {
        assert_eq!([known(None::<u64>), known(Some(0))], ["unknown", "0"]);
    }
}
