//! The line on a terminal that shows how far a recording is.

use std::io::IsTerminal;

use tracer_core::{
    units::{bytes, duration, rate},
    words::count,
};
use tracer_store::SizeGauge;

use crate::{collect::Progress, say};

/// The line. Without a terminal, it writes nothing.
#[derive(Debug)]
pub struct Line {
    is_shown: bool,
    size: SizeGauge,
    before: Progress,
}

impl Line {
    /// Creates the line on standard error, which shows nothing yet, and nothing at all if it is not wanted.
    pub fn new(is_wanted: bool, size: SizeGauge) -> Self {
        Self {
            is_shown: is_wanted && std::io::stderr().is_terminal(),
            size,
            before: Progress::default(),
        }
    }

    /// Returns whether there is a terminal that shows it.
    pub const fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Shows how far the recording is.
    pub fn show(&mut self, now: Progress) {
        self.write(&text(&self.before, &now, self.size.bytes()));
        self.before = now;
    }

    /// Shows what tracer does after the end.
    pub fn ends(&self) {
        self.write("recording  ends: tracer reads the last records, and removes its probes");
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.write("");
    }

    fn write(&self, text: &str) {
        if self.is_shown {
            say::words(&format!("\r\x1b[K{text}"));
        }
    }
}

/// Formats the line: the rate is that since the line before.
fn text(before: &Progress, now: &Progress, size: u64) -> String {
    let seconds = now.since.saturating_sub(before.since).as_secs_f64().max(0.001);
    let per_second = now.dispatches.saturating_sub(before.dispatches) as f64 / seconds;
    let whole = now.since.as_secs().saturating_mul(1_000_000_000);
    format!(
        "recording  {}, {} ({}/s), {} lost, {} written",
        if whole == 0 { "0 s".to_owned() } else { duration(whole) },
        count(now.dispatches, "dispatch"),
        rate(per_second),
        now.lost,
        bytes(size)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_that_since_the_line_before() {
        let at = |ms: u64, dispatches| Progress {
            since: Duration::from_millis(ms),
            dispatches,
            lost: 2,
        };
        assert_eq!(
            text(&at(1_000, 400), &at(1_500, 1_400), 3 << 20),
            "recording  1.0 s, 1400 dispatches (2000/s), 2 lost, 3.0 MiB written"
        );
        assert_eq!(
            text(&Progress::default(), &Progress::default(), 0),
            "recording  0 s, 0 dispatches (0/s), 0 lost, 0 B written"
        );
        // 80 columns are enough for a long one.
        let long = text(&at(0, 0), &at(86_400_000, 9_999_999_999), 3 << 20);
        assert!(long.len() < 80, "{long}");
    }
}
