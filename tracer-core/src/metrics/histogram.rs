//! Durations in the buckets of a metric.

/// Upper ends of the buckets, ns: 1-2-5 steps from 100 ns to 10 s.
pub const ENDS: [u64; 25] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Counts by bucket. Durations beyond the last bucket are in `count` only.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    counts: [u64; ENDS.len()],
    count: u64,
    sum_ns: u64,
}

impl Buckets {
    pub fn add(&mut self, ns: u64) {
        if let Some(bucket) = self.counts.get_mut(ENDS.partition_point(|&end| end < ns)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the own count of each bucket (without the buckets below it), with its upper end in ns; the last bucket is
    /// unbounded.
    pub fn each(&self) -> Vec<(Option<u64>, u64)> {
        let inside: u64 = self.counts.iter().sum();
        let closed = ENDS.iter().zip(self.counts).map(|(&end, count)| (Some(end), count));
        closed.chain([(None, self.count - inside)]).collect()
    }
}
