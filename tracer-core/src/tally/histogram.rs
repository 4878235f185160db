//! A histogram of durations whose size does not depend on the number of durations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of buckets per power of two.
const STEPS: u64 = 32;
/// `STEPS` is 2 to the power of this.
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Durations in buckets of logarithmic width.
///
/// Count, minimum, maximum and sum are exact. A percentile is the upper end of its bucket, which is at most 1/32 (3.2 %) above
/// the true value (exact below 64 ns). It is never above the maximum.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Grows to the highest bucket in use: 1920 buckets are enough for every u64.
    buckets: Vec<u64>,
    count: u64,
    min: u64,
    max: u64,
    total: u64,
}

/// The statistics of a [`Histogram`], in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Minimum.
    pub min: u64,
    /// Median, at most 3.2 % too high.
    pub p50: u64,
    /// The duration that 99 of 100 do not exceed; at most 3.2 % too high.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
    /// Sum.
    pub total: u64,
}

impl Histogram {
    /// Counts one duration.
    pub fn add(&mut self, ns: u64) {
        self.add_buckets(&[(ns, 1)], None, None, ns);
    }

    /// Counts a duration, if it is known.
    pub fn add_known(&mut self, ns: Option<u64>) {
        ns.into_iter().for_each(|ns| self.add(ns));
    }

    /// Adds durations that are already in buckets: the greatest duration of each bucket, and its count. If the minimum and
    /// maximum are unknown, the ends of the buckets replace them.
    pub fn add_buckets(&mut self, buckets: &[(u64, u64)], min: Option<u64>, max: Option<u64>, total: u64) {
        for &(end, count) in buckets.iter().filter(|(_, count)| *count > 0) {
            let at = bucket(end);
            if at >= self.buckets.len() {
                self.buckets.resize(at + 1, 0);
            }
            let least = min.unwrap_or(end);
            self.min = if self.count == 0 { least } else { self.min.min(least) };
            self.max = self.max.max(max.unwrap_or(end));
            self.buckets[at] = self.buckets[at].saturating_add(count);
            self.count = self.count.saturating_add(count);
        }
        self.total = self.total.saturating_add(total);
    }

    /// Returns the number of durations.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the statistics; `None` if there are no durations.
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        (self.count > 0).then(|| Stats {
            min: self.min,
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: self.max,
            total: self.total,
        })
    }

    /// Returns the end of the lowest bucket that `percent` of the durations do not exceed.
    fn percentile(&self, percent: u128) -> u64 {
        let rank = (u128::from(self.count) * percent).div_ceil(100);
        let mut seen = 0;
        for (at, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                return last_of(at).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// Returns the bucket of a duration: the first `2 * STEPS` buckets have one value each, then each power of two has `STEPS`
/// buckets.
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEP_BITS + 1);
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// Returns the greatest duration of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let step = bucket - shift * STEPS;
    (step << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        let last = bucket(u64::MAX);
        assert_eq!(last, 1919);
        assert_eq!(last_of(last), u64::MAX);
        for at in 0..last {
            let end = last_of(at);
            assert_eq!((bucket(end), bucket(end + 1)), (at, at + 1));
        }
    }

    #[test]
    fn a_percentile_is_at_most_one_part_in_32_too_high() {
        let mut histogram = Histogram::default();
        (1..=10_000_u64).for_each(|ns| histogram.add(ns * 100));
        let stats = histogram.stats().unwrap();
        assert_eq!((stats.min, stats.max, stats.total), (100, 1_000_000, 5_000_500_000));
        assert!((500_000..=500_000 * 33 / 32).contains(&stats.p50), "{stats:?}");
        assert!((990_000..=1_000_000).contains(&stats.p99), "{stats:?}");
    }

    #[test]
    fn durations_in_buckets_are_counted_with_others() {
        let mut histogram = Histogram::default();
        histogram.add_buckets(&[(1023, 2), (8191, 1)], Some(1000), Some(8000), 10_000);
        histogram.add(5000);
        let stats = histogram.stats().unwrap();
        assert_eq!(
            (histogram.count, stats.min, stats.max, stats.total),
            (4, 1000, 8000, 15_000)
        );
        assert_eq!((stats.p50, stats.p99), (1023, 8000));
        let mut histogram = Histogram::default();
        histogram.add_buckets(&[(1023, 1), (u64::MAX, 1)], None, None, 10);
        let stats = histogram.stats().unwrap();
        assert_eq!((stats.min, stats.p50, stats.max), (1023, 1023, u64::MAX));
    }

    #[test]
    fn nothing_counted_has_no_numbers_and_one_is_all_of_them() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.stats(), None);
        histogram.add(12_345);
        let one = 12_345;
        assert_eq!(
            histogram.stats(),
            Some(Stats {
                min: one,
                p50: one,
                p99: one,
                max: one,
                total: one
            })
        );
    }
}
