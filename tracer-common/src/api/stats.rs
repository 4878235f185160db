//! Calls that tracer only counts: the counters that the programs keep, in memory that user space maps.
//!
//! The memory is an array of places of [`WORDS`] words each. The first places, one per function, count the calls of processes for
//! which no place was left. The other places are for one function of one process each; a program assigns a place at the first call.

use super::FUNCTIONS;

/// The number of buckets for each power of two, in ns.
pub const STEPS: u64 = 8;
/// The number of buckets. The last one counts everything from 68 minutes on.
pub const BUCKETS: usize = 40 * STEPS as usize;

/// The number of pairs of process and function that are counted separately: 130 processes that call 30 functions each.
pub const PAIRS: usize = 4096;
/// The number of places.
pub const PLACES: usize = FUNCTIONS.len() + PAIRS;

/// Words of a place.
pub mod word {
    /// [`super::owner`] of the place; 0 if the owner is not known, or the place is not assigned.
    pub const OWNER: u32 = 0;
    /// Calls entered.
    pub const CALLS: u32 = 1;
    /// Calls that returned an error.
    pub const FAILED: u32 = 2;
    /// Calls left without a return.
    pub const LEFT: u32 = 3;
    /// Sum of the durations of the calls that returned, ns.
    pub const TOTAL_NS: u32 = 4;
    /// The least duration with every bit inverted, so that a program can raise it from 0.
    pub const NOT_MIN_NS: u32 = 5;
    /// The greatest duration.
    pub const MAX_NS: u32 = 6;
    /// The count of the first bucket; the other buckets follow.
    pub const BUCKETS: u32 = 7;
}

/// The number of words in a place.
pub const WORDS: usize = word::BUCKETS as usize + BUCKETS;

/// Encodes the owner of a place in a word that is not 0, because no process has id 0.
#[must_use]
#[inline(always)]
pub const fn owner(tgid: u32, function: u32) -> u64 {
    (tgid as u64) << 32 | function as u64
}

/// Returns the process and the number of the function of the place `place`, from its word [`word::OWNER`]. Returns `None` if the
/// place is not assigned, or not yet.
#[must_use]
pub const fn of_owner(place: usize, owner: u64) -> Option<(Option<u32>, usize)> {
    if place < FUNCTIONS.len() {
        Some((None, place))
    } else if owner == 0 {
        None
    } else {
        Some((Some((owner >> 32) as u32), (owner & 0xffff_ffff) as usize))
    }
}

/// Counts the return of a call after `ns`; `add` and `raise` change words of its place. A reader that sees a bucket counted also
/// sees its least and greatest duration. A reader that sees an error also sees its bucket. [`Counts::read`] reads in the opposite
/// order.
#[inline(always)]
pub fn returned(ns: u64, failed: bool, add: impl Fn(u32, u64), raise: impl Fn(u32, u64)) {
    raise(word::MAX_NS, ns);
    raise(word::NOT_MIN_NS, !ns);
    add(word::TOTAL_NS, ns);
    add(word::BUCKETS + bucket(ns) as u32, 1);
    if failed {
        add(word::FAILED, 1);
    }
}

/// The counters of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Calls entered.
    pub calls: u64,
    /// Calls that returned: the sum of the buckets.
    pub returned: u64,
    /// Calls that returned an error.
    pub failed: u64,
    /// Calls left without a return.
    pub left: u64,
    /// Sum of the durations, ns.
    pub total_ns: u64,
    /// The least duration; meaningless if no call returned.
    pub min_ns: u64,
    /// The greatest duration; meaningless if no call returned.
    pub max_ns: u64,
}

impl Counts {
    /// Reads the counters word by word, while programs may continue to count. Passes each bucket that is not empty to `buckets`, as
    /// its greatest duration and its count. There are never more errors than returns, and never more returns and left calls than
    /// calls.
    #[must_use]
    pub fn read(read: impl Fn(u32) -> u64, mut buckets: impl FnMut(u64, u64)) -> Self {
        let failed = read(word::FAILED);
        let mut returned = 0_u64;
        for bucket in 0..BUCKETS {
            let count = read(word::BUCKETS + bucket as u32);
            if count > 0 {
                returned = returned.saturating_add(count);
                buckets(bucket_end(bucket), count);
            }
        }
        Self {
            returned,
            failed,
            left: read(word::LEFT),
            total_ns: read(word::TOTAL_NS),
            min_ns: !read(word::NOT_MIN_NS),
            max_ns: read(word::MAX_NS),
            calls: read(word::CALLS),
        }
    }
}

/// Returns the bucket of a duration. Each of the first `2 * STEPS` buckets is for one value.
#[must_use]
#[inline(always)]
pub const fn bucket(ns: u64) -> usize {
    let bits = u64::BITS - ns.leading_zeros();
    let shift = bits.saturating_sub(STEPS.trailing_zeros() + 1) as u64;
    let bucket = shift * STEPS + (ns >> shift);
    if bucket < BUCKETS as u64 {
        bucket as usize
    } else {
        BUCKETS - 1
    }
}

/// Returns the greatest duration of a bucket. The last bucket has no upper end; its result is the greatest number.
#[must_use]
pub const fn bucket_end(bucket: usize) -> u64 {
    if bucket >= BUCKETS - 1 {
        return u64::MAX;
    }
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    ((bucket - shift * STEPS) << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::cell::Cell;
    use std::{vec, vec::Vec};

    use super::*;

    #[test]
    fn buckets_are_where_they_end() {
        for at in 0..BUCKETS - 1 {
            assert_eq!((bucket(bucket_end(at)), bucket(bucket_end(at) + 1)), (at, at + 1));
            // A bucket is at most one part in STEPS wide.
            let begin = if at == 0 { 0 } else { bucket_end(at - 1) + 1 };
            assert!((bucket_end(at) - begin) * STEPS <= begin, "{at}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_end(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn what_is_counted_is_what_is_read() {
        let words = vec![const { Cell::new(0_u64) }; WORDS];
        let word_at = |at: u32| &words[at as usize];
        let add = |at: u32, n: u64| word_at(at).set(word_at(at).get() + n);
        let raise = |at: u32, n: u64| word_at(at).set(word_at(at).get().max(n));
        let read = || {
            let mut buckets = Vec::new();
            let counts = Counts::read(|at| word_at(at).get(), |end, count| buckets.push((end, count)));
            (counts, buckets)
        };
        assert_eq!((read().0.calls, read().0.returned, read().1), (0, 0, vec![]));
        add(word::CALLS, 7);
        add(word::LEFT, 1);
        for (ns, failed) in [(0, false), (1000, false), (1001, true), (3_000_000, false), (7, true)] {
            returned(ns, failed, add, raise);
        }
        let (counts, buckets) = read();
        let expected = Counts {
            calls: 7,
            returned: 5,
            failed: 2,
            left: 1,
            total_ns: 3_002_008,
            min_ns: 0,
            max_ns: 3_000_000,
        };
        assert_eq!(counts, expected);
        assert_eq!(buckets, [(0, 1), (7, 1), (1023, 2), (3_145_727, 1)]);
    }

    #[test]
    fn places_say_whose_they_are() {
        assert_eq!(of_owner(3, 0), Some((None, 3)));
        assert_eq!(of_owner(FUNCTIONS.len(), 0), None);
        assert_eq!(of_owner(FUNCTIONS.len(), owner(77, 3)), Some((Some(77), 3)));
    }
}
