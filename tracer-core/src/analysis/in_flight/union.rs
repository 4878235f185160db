//! Lengths of unions of time intervals, in bounded memory.

/// Number of disjoint intervals that are kept.
const MAX_INTERVALS: usize = 4096;

/// The union of intervals, which come nearly in the order of their ends. Parts of intervals that come much too late do not count, so
/// the total is a lower bound.
#[derive(Debug, Default)]
pub(super) struct Union {
    /// Disjoint intervals in the order of time, behind `floor`.
    intervals: Vec<(u64, u64)>,
    /// Length of the intervals before them.
    folded: u64,
    /// End of these.
    floor: u64,
}

impl Union {
    /// Adds an interval.
    pub(super) fn add(&mut self, begin: u64, end: u64) {
        let (mut begin, mut end) = (begin.max(self.floor), end);
        if begin >= end {
            return;
        }
        let from = self.intervals.partition_point(|&(_, known)| known < begin);
        let to = self.intervals.partition_point(|&(known, _)| known <= end);
        if let Some(&[(first, _), ..]) = self.intervals.get(from..to) {
            begin = begin.min(first);
        }
        if let Some(&[.., (_, last)]) = self.intervals.get(from..to) {
            end = end.max(last);
        }
        self.intervals.splice(from..to.max(from), [(begin, end)]);
        if self.intervals.len() > MAX_INTERVALS {
            self.fold();
        }
    }

    /// Returns the length of the union.
    pub(super) fn total(&self) -> u64 {
        self.folded.saturating_add(length(&self.intervals))
    }

    fn fold(&mut self) {
        let old = self.intervals.len() / 2;
        self.folded = self.folded.saturating_add(length(&self.intervals[..old]));
        self.floor = self.intervals[old - 1].1;
        self.intervals.drain(..old);
    }
}

fn length(intervals: &[(u64, u64)]) -> u64 {
    intervals
        .iter()
        .map(|(begin, end)| end - begin)
        .fold(0, u64::saturating_add)
}

/// The time in which at least one of several things is in progress. Begins and ends come in the order of time.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// Things in progress.
    open: u64,
    /// Begin of the time that is not counted yet.
    since: u64,
    total: u64,
}

impl Sweep {
    /// Something begins.
    pub(super) fn begin(&mut self, time: u64) {
        if self.open == 0 {
            // An end may be known with a delay, so it can be after this begin.
            self.since = self.since.max(time);
        }
        self.open += 1;
    }

    /// Something ends.
    pub(super) fn end(&mut self, time: u64) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.total = self.total.saturating_add(time.saturating_sub(self.since));
            self.since = self.since.max(time);
        }
    }

    /// Returns the time that has ended.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_union_counts_each_time_once() {
        let mut union = Union::default();
        for (begin, end) in [(10, 20), (15, 30), (40, 50), (30, 40), (5, 6), (7, 7), (9, 4)] {
            union.add(begin, end);
        }
        assert_eq!(union.total(), 41);
        assert_eq!(union.intervals, [(5, 6), (10, 50)]);
    }

    #[test]
    fn a_union_of_many_intervals_stays_small() {
        let mut union = Union::default();
        for at in 0..100_000 {
            union.add(at * 10, at * 10 + 3);
        }
        assert_eq!(union.total(), 300_000);
        assert!(union.intervals.len() <= MAX_INTERVALS);
        // What comes much too late counts from the floor on only.
        let floor = union.floor;
        union.add(0, floor + 1);
        assert!(union.total() <= 300_001);
    }

    #[test]
    fn a_sweep_counts_the_time_with_something_in_progress() {
        let mut sweep = Sweep::default();
        sweep.begin(10);
        sweep.begin(20);
        sweep.end(30);
        sweep.end(50);
        // The end at 50 was known late.
        sweep.begin(45);
        sweep.end(60);
        sweep.begin(100);
        sweep.end(101);
        assert_eq!(sweep.total(), 40 + 10 + 1);
    }

    proptest! {
        #[test]
        fn a_union_equals_the_set_of_its_moments(intervals in prop::collection::vec((0_u64..200, 0_u64..40), 0..40)) {
            let mut union = Union::default();
            let mut moments = std::collections::BTreeSet::new();
            for (begin, length) in intervals {
                union.add(begin, begin + length);
                moments.extend(begin..begin + length);
            }
            prop_assert_eq!(union.total(), moments.len() as u64);
        }
    }
}
