//! Distributions of times, in bars that are equally wide on a logarithmic axis.

use std::sync::LazyLock;

use crate::tally::{Histogram, Stats};

/// Bars for each power of two.
const BARS: u32 = 4;

/// The ends of the bars, exclusive, in ns: 1, 1.19, 1.41, 1.68, 2, ... rounded up to whole numbers.
static ENDS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let end = |bar: u32| f64::from(bar) / f64::from(BARS);
    (0..64 * BARS).map(|bar| end(bar).exp2().ceil() as u64).collect()
});

/// Times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Bars with times in them, and those between, the shortest times first.
    pub bars: Vec<Bar>,
    /// Median, 99th percentile and others; `None` without times.
    pub stats: Option<Stats>,
    /// Things whose time is known.
    pub known: u64,
    /// Things whose time is unknown.
    pub unknown: u64,
}

/// Times of about the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The shortest time, ns.
    pub from_ns: u64,
    /// The time at which it ends, ns, exclusive.
    pub to_ns: u64,
    /// Times in it.
    pub count: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    counts: Vec<u64>,
    times: Histogram,
    known: u64,
    unknown: u64,
}

impl Counter {
    /// Counts a thing, and its time if that is known.
    pub(super) fn add(&mut self, ns: Option<u64>) {
        let Some(ns) = ns else {
            self.unknown += 1;
            return;
        };
        let at = ENDS.partition_point(|&end| end <= ns);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.known += 1;
        self.times.add(ns);
    }

    pub(super) fn finish(self) -> Latency {
        let from = |at: usize| at.checked_sub(1).map_or(0, |before| ENDS[before]);
        let bars = self.counts.iter().enumerate().map(|(at, &count)| Bar {
            from_ns: from(at),
            to_ns: ENDS.get(at).copied().unwrap_or(u64::MAX),
            count,
        });
        Latency {
            bars: bars.skip_while(|bar| bar.count == 0).collect(),
            stats: self.times.stats(),
            known: self.known,
            unknown: self.unknown,
        }
    }
}
