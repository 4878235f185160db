//! Quantities as text: the only place that chooses units, for reports, `top`, the live page and verdicts.

/// Formats a duration in ns: `999 ns`, `13.2 us`, `417 us`, `1m35s`, `2h01m`. At most 7 characters, up to 99 hours.
#[must_use]
pub fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => three_digits(ns as f64 / 1e3) + " us",
        999_500..999_500_000 => three_digits(ns as f64 / 1e6) + " ms",
        999_500_000..60_000_000_000 => three_digits(ns as f64 / 1e9) + " s",
        60_000_000_000..3_600_000_000_000 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600_000_000_000.. => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a size in bytes: `64 B`, `1.3 MiB`, `512 GiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut units = UNITS.iter();
    while value >= 1023.5 && units.len() > 1 {
        value /= 1024.0;
        units.next();
    }
    format!("{} {}", three_digits(value), units.next().unwrap_or(&""))
}

/// Formats a count in at most 6 characters: exact up to 99 999, then `1.2M`.
#[must_use]
pub fn count(n: u64) -> String {
    let in_units = |size: f64| three_digits(n as f64 / size);
    match n {
        0..100_000 => n.to_string(),
        100_000..1_000_000 => in_units(1e3) + "k",
        1_000_000..1_000_000_000 => in_units(1e6) + "M",
        1_000_000_000..1_000_000_000_000 => in_units(1e9) + "G",
        1_000_000_000_000.. => in_units(1e12) + "T",
    }
}

/// Formats a rate per second, without the unit: `0.4`, `13`, `1.2M`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    if per_s > 0.0 && per_s < 9.95 {
        format!("{per_s:.1}")
    } else {
        count(per_s.round() as u64)
    }
}

/// Formats a share in percent: `25.0 %`; `None` of nothing. Neither nothing nor everything is claimed of a number that is only near
/// it.
#[must_use]
pub fn share(part: u64, of: u64) -> Option<String> {
    let percent = part as f64 * 100.0 / of as f64;
    match of {
        0 => None,
        _ if part > 0 && percent < 0.05 => Some("<0.1 %".to_owned()),
        _ if part < of && percent >= 99.95 => Some(">99.9 %".to_owned()),
        _ => Some(format!("{percent:.1} %")),
    }
}

/// Formats a number with one decimal while it has fewer than three digits.
fn three_digits(value: f64) -> String {
    if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_stay_short() {
        let shown = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.5 us"),
            (13_150, "13.2 us"),
            (99_960, "100 us"),
            (416_700, "417 us"),
            (999_499, "999 us"),
            (999_500, "1.0 ms"),
            (3_223_373, "3.2 ms"),
            (59_900_000_000, "59.9 s"),
            (61_000_000_000, "1m01s"),
            (7_260_000_000_000, "2h01m"),
        ];
        for (ns, text) in shown {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        let shown = [
            (64, "64 B"),
            (1024, "1.0 KiB"),
            (2048 + 256, "2.2 KiB"),
            (3 << 20, "3.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (300 << 30, "300 GiB"),
            (u64::MAX, "16384 PiB"),
        ];
        for (n, text) in shown {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn a_share_never_claims_all_or_nothing_of_a_part() {
        let shares = [(1, 100_000), (99_999, 100_000), (1, 4), (0, 4), (4, 4)];
        assert_eq!(
            shares.map(|(part, of)| share(part, of).unwrap()),
            ["<0.1 %", ">99.9 %", "25.0 %", "0.0 %", "100.0 %"]
        );
        assert_eq!(share(0, 0), None);
    }

    #[test]
    fn counts_are_exact_while_they_fit() {
        assert_eq!(
            [0, 99_999, 100_000, 1_234_567, 250_000_000].map(count),
            ["0", "99999", "100k", "1.2M", "250M"]
        );
        assert_eq!([0.0, 0.4, 12.6].map(rate), ["0", "0.4", "13"]);
    }
}
