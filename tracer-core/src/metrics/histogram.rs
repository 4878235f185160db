//! Durations in the buckets of a metric.

use crate::tally::more;

/// Upper ends of the buckets, ns: 1-2-5 steps from 100 ns to 10 s.
pub const ENDS: [u64; 25] = {
    let mut ends = [0; 25];
    let mut at = 0;
    while at < ends.len() {
        ends[at] = [100, 200, 500][at % 3] * 10_u64.pow(at as u32 / 3);
        at += 1;
    }
    ends
};

/// Counts by bucket. Durations beyond the last bucket are in `count` only.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    counts: [u64; ENDS.len()],
    pub count: u64,
    pub sum_ns: u64,
}

impl Buckets {
    pub fn add(&mut self, ns: u64) {
        if let Some(bucket) = self.counts.get_mut(ENDS.partition_point(|&end| end < ns)) {
            *bucket += 1;
        }
        self.count += 1;
        more(&mut self.sum_ns, ns);
    }

    /// Counts a duration, if it is known.
    pub fn add_known(&mut self, ns: Option<u64>) {
        ns.into_iter().for_each(|ns| self.add(ns));
    }

    /// Returns the own count of each bucket (without the buckets below it), with its upper end in ns; the last bucket is
    /// unbounded.
    pub fn each(&self) -> Vec<(Option<u64>, u64)> {
        let inside: u64 = self.counts.iter().sum();
        let closed = ENDS.iter().zip(self.counts).map(|(&end, count)| (Some(end), count));
        closed.chain([(None, self.count - inside)]).collect()
    }
}
