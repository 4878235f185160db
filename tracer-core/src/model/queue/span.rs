//! The published indexes of one queue: a span without holes, and its missing indexes.

use tracer_common::queue::MAX_PACKETS;

use super::gaps::{Gap, Gaps};

/// The span: indexes `base..end` are published. Each is either captured (a fact was created for it), missing, or given up.
#[derive(Debug)]
pub(super) struct Span {
    base: u64,
    end: u64,
    published: u64,
    gaps: Gaps,
}

impl Span {
    /// Creates an empty span that begins at `base`.
    pub(super) fn new(base: u64) -> Self {
        Self {
            base,
            end: base,
            published: 0,
            gaps: Gaps::default(),
        }
    }

    /// Returns one past the highest published index.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of published indexes.
    pub(super) fn published(&self) -> u64 {
        self.published
    }

    /// Returns the lowest and the highest published index.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        (self.base < self.end).then(|| (self.base, self.end - 1))
    }

    /// Returns the lowest index that is published but not captured.
    pub(super) fn first_missing(&self) -> Option<u64> {
        self.gaps.first()
    }

    /// Returns whether any index of `start..end` is published but not captured.
    pub(super) fn is_any_missing(&self, start: u64, end: u64) -> bool {
        self.gaps.is_any_in(start, end)
    }

    /// Returns whether `index` is so far below the span that no reordering explains it. In that case garbage started the span.
    pub(super) fn is_far_above(&self, index: u64) -> bool {
        index < self.base.saturating_sub(u64::from(MAX_PACKETS))
    }

    /// Skips the indexes between the span and `index`, which are not known to be published.
    pub(super) fn skip_to(&mut self, index: u64) {
        if self.base == self.end {
            self.base = index;
        }
        self.end = self.end.max(index);
    }

    /// Starts again at `base`. The caller must have given up the missing indexes before.
    pub(super) fn restart(&mut self, base: u64) {
        self.base = base;
        self.end = base;
    }

    /// Counts `count` indexes that were published before the span was started again, and that the span does not contain.
    pub(super) fn count_former(&mut self, count: u64) {
        self.published = self.published.saturating_add(count);
    }

    /// Publishes everything from `base` up to the span, or up to `end` if the span is empty.
    pub(super) fn lower_to(&mut self, base: u64, end: u64) {
        if self.base == self.end {
            self.restart(base);
        }
        self.cover(base, end, false);
    }

    /// Publishes everything in `first..end` and between it and the span. New indexes are missing.
    pub(super) fn cover(&mut self, first: u64, end: u64, unreadable: bool) {
        if first < self.base {
            self.gaps.push_bottom(first, self.base);
            self.published = self.published.saturating_add(self.base - first);
            self.base = first;
        }
        if end > self.end {
            self.gaps.push_top(self.end, end, unreadable);
            self.published = self.published.saturating_add(end - self.end);
            self.end = end;
        }
    }

    /// Captures the packet at `index`: it was read, which proves that it was published. Returns false if it was read or given up
    /// before.
    pub(super) fn capture(&mut self, index: u64) -> bool {
        let Some(next) = index.checked_add(1) else { return false };
        // The usual case is the next packet, which leaves the set of gaps unchanged.
        if index == self.end {
            self.published = self.published.saturating_add(1);
            self.end = next;
            return true;
        }
        self.cover(index, next, false);
        self.gaps.remove(index)
    }

    /// Gives up the lowest missing indexes, if they are below `limit` (or if there are too many gaps).
    pub(super) fn give_up_below(&mut self, limit: u64) -> Option<Gap> {
        let limit = if self.gaps.is_crowded() { u64::MAX } else { limit };
        self.gaps.pop_below(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gaps::MAX_GAPS;
    use super::*;

    #[test]
    fn an_index_is_captured_once() {
        let mut span = Span::new(0);
        assert!(span.capture(0) && !span.capture(0));
        assert!(span.capture(3) && span.capture(1) && !span.capture(1));
        assert_eq!((span.published(), span.first_missing(), span.end()), (4, Some(2), 4));
    }

    #[test]
    fn a_late_walk_lowers_the_base_and_leaves_the_gap_missing() {
        let mut span = Span::new(12);
        assert!(span.capture(12) && span.capture(9));
        assert_eq!(
            (span.bounds(), span.published(), span.first_missing()),
            (Some((9, 12)), 4, Some(10))
        );
    }

    #[test]
    fn the_last_number_is_no_index() {
        let mut span = Span::new(0);
        assert!(!span.capture(u64::MAX));
        span.cover(0, u64::MAX, false);
        span.cover(0, u64::MAX, false);
        assert_eq!(span.published(), u64::MAX);
    }

    #[test]
    fn absurdly_many_gaps_are_given_up_from_below() {
        let mut span = Span::new(0);
        for k in 0..=MAX_GAPS as u64 {
            assert!(span.capture(2 * k + 1));
        }
        assert!(span.give_up_below(0).is_some(), "one gap too many");
        assert!(span.give_up_below(0).is_none(), "and no more than that");
    }
}
