//! Rates of events.

/// Number of seconds of history that are kept.
pub const HISTORY: usize = 60;
/// Length of a slice, ns.
const SLICE_NS: u64 = 1_000_000_000;

/// Counts by second of trace time.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Counts of the last `HISTORY` seconds; second `s` is at `s % HISTORY`.
    slices: [u64; HISTORY],
    /// The latest second in `slices`.
    second: u64,
    total: u64,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            slices: [0; HISTORY],
            second: 0,
            total: 0,
        }
    }
}

impl Rate {
    /// Counts `n` events at this time. Events older than the history count only in the total.
    pub fn add(&mut self, time_ns: u64, n: u64) {
        self.total = self.total.saturating_add(n);
        let second = time_ns / SLICE_NS;
        if second > self.second {
            let passed = (second - self.second).min(HISTORY as u64);
            for step in 1..=passed {
                self.slices[slot(second - passed + step)] = 0;
            }
            self.second = second;
        }
        if self.second - second < HISTORY as u64 {
            let slice = &mut self.slices[slot(second)];
            *slice = slice.saturating_add(n);
        }
    }

    /// Returns the number of all counted events.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of events in the second before `now_ns`: the count of the current calendar second, plus a share of the
    /// count of the previous one. The share is the part of it that the interval covers, as if its events had come evenly.
    pub fn per_second(&self, now_ns: u64) -> f64 {
        let second = now_ns / SLICE_NS;
        let before = 1.0 - (now_ns % SLICE_NS) as f64 / SLICE_NS as f64;
        let earlier = second.checked_sub(1).map_or(0, |s| self.in_second(s));
        self.in_second(second) as f64 + earlier as f64 * before
    }

    /// Returns the counts of the last complete seconds, the oldest first.
    pub fn history(&self, now_ns: u64) -> Vec<u32> {
        let second = now_ns / SLICE_NS;
        let kept = second.min(HISTORY as u64 - 1);
        (second - kept..second)
            .map(|s| u32::try_from(self.in_second(s)).unwrap_or(u32::MAX))
            .collect()
    }

    fn in_second(&self, second: u64) -> u64 {
        let age = self.second.checked_sub(second);
        let is_kept = age.is_some_and(|age| age < HISTORY as u64);
        if is_kept { self.slices[slot(second)] } else { 0 }
    }
}

fn slot(second: u64) -> usize {
    (second % HISTORY as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SLICE_NS;

    #[test]
    fn a_steady_rate_is_shown_at_every_moment() {
        let mut rate = Rate::default();
        (0..300).for_each(|i| rate.add(i * S / 100, 1));
        assert!((rate.per_second(3 * S) - 100.0).abs() < 1.0);
        assert!(
            (rate.per_second(2 * S + S / 2) - 150.0).abs() < 1.0,
            "counted ahead of the moment asked for"
        );
        assert_eq!(rate.history(3 * S), [100, 100, 100]);
    }

    #[test]
    fn what_ended_falls_to_nothing() {
        let mut rate = Rate::default();
        rate.add(5 * S, 1000);
        assert!(rate.per_second(5 * S) > 0.0);
        assert!(rate.per_second(7 * S).abs() < f64::EPSILON);
        assert_eq!(rate.history(500 * S).iter().sum::<u32>(), 0);
        assert_eq!(rate.total(), 1000);
    }

    #[test]
    fn a_long_pause_leaves_no_old_counts_behind() {
        let mut rate = Rate::default();
        (0..HISTORY as u64).for_each(|s| rate.add(s * S, 7));
        rate.add(1000 * S, 1);
        assert_eq!(rate.history(1001 * S).iter().sum::<u32>(), 1);
    }

    #[test]
    fn late_ones_count_where_they_belong() {
        let mut rate = Rate::default();
        rate.add(100 * S, 1);
        rate.add(98 * S, 5);
        rate.add(3 * S, 9);
        let history = rate.history(101 * S);
        assert_eq!(history[history.len() - 3..], [5, 0, 1]);
        assert_eq!(history.iter().sum::<u32>(), 6);
        assert_eq!(rate.total(), 15);
    }
}
