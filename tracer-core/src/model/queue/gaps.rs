//! Published indexes without a packet so far: a sorted set of gaps, usually empty.

use std::collections::VecDeque;

use tracer_common::queue::MAX_PACKETS;

/// Largest number of gaps kept: two laps of the largest ring with every second packet missing. No queue has more.
pub(super) const MAX_GAPS: usize = MAX_PACKETS as usize;

/// A gap: the indexes `start..end` are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the doorbell that published them could not read the process's memory.
    pub(super) unreadable: bool,
}

/// Disjoint gaps, lowest first.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    ranges: VecDeque<Gap>,
}

impl Gaps {
    /// Returns the lowest missing index.
    pub(super) fn first(&self) -> Option<u64> {
        self.ranges.front().map(|gap| gap.start)
    }

    /// Returns whether any index of `start..end` is missing.
    pub(super) fn is_any_in(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|gap| gap.end <= start);
        self.ranges.get(at).is_some_and(|gap| gap.start < end)
    }

    /// Returns whether there are more gaps than any queue can have.
    pub(super) fn is_crowded(&self) -> bool {
        self.ranges.len() > MAX_GAPS
    }

    /// Adds `start..end`, which is above all other gaps.
    pub(super) fn push_top(&mut self, start: u64, end: u64, unreadable: bool) {
        if start >= end {
            return;
        }
        match self.ranges.back_mut() {
            Some(last) if last.end == start && last.unreadable == unreadable => last.end = end,
            _ => self.ranges.push_back(Gap { start, end, unreadable }),
        }
    }

    /// Adds `start..end`, which is below all other gaps.
    pub(super) fn push_bottom(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        match self.ranges.front_mut() {
            Some(first) if first.start == end && !first.unreadable => first.start = start,
            _ => self.ranges.push_front(Gap {
                start,
                end,
                unreadable: false,
            }),
        }
    }

    /// Removes one index. Returns whether it was missing.
    pub(super) fn remove(&mut self, index: u64) -> bool {
        let at = self.ranges.partition_point(|gap| gap.end <= index);
        let Some(gap) = self.ranges.get_mut(at).filter(|gap| gap.start <= index) else {
            return false;
        };
        let above = Gap {
            start: index + 1,
            ..*gap
        };
        gap.end = index;
        match (gap.start < gap.end, above.start < above.end) {
            (true, true) => self.ranges.insert(at + 1, above),
            (false, true) => *gap = above,
            (true, false) => {}
            (false, false) => {
                self.ranges.remove(at);
            }
        }
        true
    }

    /// Removes and returns the lowest gap, or the part of it below `limit`.
    pub(super) fn pop_below(&mut self, limit: u64) -> Option<Gap> {
        let first = self.ranges.front_mut().filter(|gap| gap.start < limit)?;
        let part = Gap {
            end: first.end.min(limit),
            ..*first
        };
        first.start = part.end;
        if first.start == first.end {
            self.ranges.pop_front();
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(gaps: &mut Gaps) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| gaps.pop_below(u64::MAX))
            .map(|gap| (gap.start, gap.end))
            .collect()
    }

    #[test]
    fn taking_an_index_out_splits_its_gap_once() {
        let mut gaps = Gaps::default();
        gaps.push_top(10, 15, false);
        assert!(gaps.remove(12) && !gaps.remove(12) && gaps.remove(10) && gaps.remove(14));
        assert!(!gaps.remove(9) && !gaps.remove(15));
        assert_eq!(drain(&mut gaps), [(11, 12), (13, 14)]);
    }

    #[test]
    fn neighbours_of_one_kind_join() {
        let mut gaps = Gaps::default();
        gaps.push_top(4, 6, false);
        gaps.push_top(6, 8, false);
        gaps.push_top(8, 9, true);
        gaps.push_bottom(2, 4);
        gaps.push_bottom(0, 1);
        assert_eq!(gaps.first(), Some(0));
        assert_eq!(drain(&mut gaps), [(0, 1), (2, 8), (8, 9)]);
    }

    #[test]
    fn only_what_lies_below_the_limit_is_popped() {
        let mut gaps = Gaps::default();
        gaps.push_top(0, 10, false);
        assert_eq!(
            gaps.pop_below(4),
            Some(Gap {
                start: 0,
                end: 4,
                unreadable: false
            })
        );
        assert_eq!(gaps.pop_below(4), None);
        assert_eq!(gaps.first(), Some(4));
    }

    #[test]
    fn indexes_at_the_end_of_the_number_range_are_harmless() {
        let mut gaps = Gaps::default();
        gaps.push_top(u64::MAX - 1, u64::MAX, false);
        assert!(!gaps.remove(u64::MAX) && gaps.remove(u64::MAX - 1));
        assert_eq!(gaps.first(), None);
    }
}
