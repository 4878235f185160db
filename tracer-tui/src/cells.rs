//! Values that may be unknown, and series of numbers in one row.

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
    fn a_sparkline_is_as_wide_as_asked_and_shows_little_things() {
        assert_eq!(sparkline(&[0, 1, 1000], 5), "   ▁█");
        assert_eq!(sparkline(&[], 3), "   ");
        assert_eq!(sparkline(&[9, 0, 8, 4], 2), "█▄");
    }
}
