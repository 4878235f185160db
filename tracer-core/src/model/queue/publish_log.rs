//! Log of the doorbells and what they published, used for the age of packets that the GPU has not taken yet.

use std::collections::VecDeque;

use super::write_log::thin_older_half;

/// Largest number of doorbells kept. With more doorbells between two samples, the log drops some of them. An age is then
/// understated, never overstated.
const MAX_KEPT: usize = 256;

/// The doorbells of one queue that published something, from the oldest packet in flight on.
#[derive(Debug, Default)]
pub(super) struct PublishLog {
    /// Time, and one past the highest index published at that time.
    rung: VecDeque<(u64, u64)>,
    /// The latest doorbell that was dropped from the front, of which the time and the end are the highest.
    before: Option<(u64, u64)>,
}

impl PublishLog {
    /// Notes that a doorbell published everything below `end`.
    pub(super) fn publish(&mut self, time_ns: u64, end: u64) {
        if self.rung.len() >= MAX_KEPT {
            // Of two, the younger one is kept.
            thin_older_half(&mut self.rung, 1);
        }
        self.rung.push_back((time_ns, end));
    }

    /// Returns one past the highest index published at a time; `None` if that is not known. A sample of an earlier time can arrive
    /// after the doorbells of that time were dropped.
    pub(super) fn end_at(&self, time_ns: u64) -> Option<u64> {
        let kept = self.rung.iter().rev();
        let mut all = kept.chain(&self.before);
        all.find(|(rung_ns, _)| *rung_ns <= time_ns).map(|(_, end)| *end)
    }

    /// Returns the latest possible time at which `index` was published.
    pub(super) fn published_ns(&self, index: u64) -> Option<u64> {
        self.rung
            .iter()
            .find(|(_, end)| *end > index)
            .map(|(time_ns, _)| *time_ns)
    }

    /// Forgets the doorbells whose packets the GPU has taken.
    pub(super) fn taken(&mut self, read_index: u64) {
        while let Some(dropped) = self.rung.pop_front_if(|(_, end)| *end <= read_index) {
            self.before = self.before.max(Some(dropped));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_has_a_time() {
        let mut log = PublishLog::default();
        assert_eq!((log.end_at(100), log.published_ns(0)), (None, None));
        for (time_ns, end) in [(10, 1), (20, 5), (30, 6)] {
            log.publish(time_ns, end);
        }
        assert_eq!(
            [5, 10, 25, 99].map(|t| log.end_at(t)),
            [None, Some(1), Some(5), Some(6)]
        );
        assert_eq!(
            [0, 1, 4, 5, 6].map(|i| log.published_ns(i)),
            [Some(10), Some(20), Some(20), Some(30), None]
        );
        log.taken(5);
        assert_eq!((log.end_at(25), log.published_ns(5)), (Some(5), Some(30)));
        // What was published at an earlier time is no longer known.
        assert_eq!((log.end_at(15), log.end_at(20)), (None, Some(5)));
    }

    #[test]
    fn what_thins_out_makes_packets_younger() {
        let mut log = PublishLog::default();
        for k in 0..10_000_u64 {
            log.publish(k, k + 1);
        }
        assert!(log.rung.len() <= MAX_KEPT);
        for index in [0, 1, 5_000, 9_998] {
            assert!(log.published_ns(index).is_some_and(|ns| ns >= index), "{index}");
        }
        assert_eq!(log.published_ns(9_999), Some(9_999));
    }
}
