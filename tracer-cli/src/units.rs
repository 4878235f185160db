//! Numbers for people.

/// A duration given in ns, in the unit that keeps it short.
pub fn duration(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// A size in bytes.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..0x10_0000 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1024.0 / 1024.0),
    }
}

/// A number that may be unknown.
pub fn known(n: Option<u64>) -> String {
    n.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
