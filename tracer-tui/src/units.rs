//! Numbers in a few columns.

/// Formats a duration in ns in at most 6 characters.
pub fn duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    if ns >= 3_600_000_000_000 {
        return format!("{}h{:02}m", ns / 3_600_000_000_000, ns / 60_000_000_000 % 60);
    }
    if ns >= 60_000_000_000 {
        return format!("{}m{:02}s", ns / 60_000_000_000, ns / 1_000_000_000 % 60);
    }
    let Some((size, unit)) = UNITS.into_iter().find(|&(size, _)| ns >= size) else {
        return format!("{ns}ns");
    };
    let value = ns as f64 / size as f64;
    if value < 9.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// Formats a count in at most 6 characters: exact up to 99 999.
pub fn count(n: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ];
    if n < 100_000 {
        return n.to_string();
    }
    let (size, unit) = UNITS.into_iter().find(|&(size, _)| n >= size).unwrap_or((1, ""));
    let value = n as f64 / size as f64;
    if value < 99.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// Formats a rate per second.
pub fn rate(per_s: f64) -> String {
    if per_s > 0.0 && per_s < 9.95 {
        format!("{per_s:.1}")
    } else {
        count(per_s.round() as u64)
    }
}

/// The text for an unknown value.
pub const UNKNOWN: &str = "?";

/// Formats a value that may be unknown.
pub fn known<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// Draws heights in one row: the greatest is full, and a height other than 0 is always visible.
pub fn sparkline(history: &[u32], width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &history[history.len().saturating_sub(width)..];
    let most = shown.iter().copied().max().unwrap_or(0);
    let drawn = shown.iter().map(|&n| match (n, most) {
        (0, _) => ' ',
        (n, most) => HEIGHTS[(u64::from(n) * 7 / u64::from(most)) as usize],
    });
    std::iter::repeat_n(' ', width - shown.len()).chain(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_stay_short() {
        let shown: Vec<String> = [
            0,
            999,
            1_500,
            9_960,
            11_000_000,
            59_900_000_000,
            61_000_000_000,
            7_260_000_000_000,
        ]
        .map(duration)
        .into();
        assert_eq!(
            shown,
            ["0ns", "999ns", "1.5us", "10us", "11ms", "60s", "1m01s", "2h01m"]
        );
    }

    #[test]
    fn counts_are_exact_while_they_fit() {
        assert_eq!(
            [0, 99_999, 100_000, 1_234_567, 250_000_000].map(count),
            ["0", "99999", "100k", "1.2M", "250M"]
        );
        assert_eq!([0.0, 0.4, 12.6].map(rate), ["0", "0.4", "13"]);
    }

    #[test]
    fn a_sparkline_is_as_wide_as_asked_and_shows_little_things() {
        assert_eq!(sparkline(&[0, 1, 1000], 5), "   ▁█");
        assert_eq!(sparkline(&[], 3), "   ");
        assert_eq!(sparkline(&[9, 0, 8, 4], 2), "█▄");
    }
}
