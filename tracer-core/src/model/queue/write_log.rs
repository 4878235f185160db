//! Log of a queue's write index over time. It bounds the time of a reserve that no probe saw.
//!
//! A write index only grows. If it had not passed `i` at time `t`, packet `i` was reserved after `t`, by any thread: another one
//! than the one that rang for it, or the runtime past every probe.

use std::collections::VecDeque;

/// Largest number of observations kept. Between a packet's reserve and its doorbell there are a few observations of each producer
/// of the queue; but thousands, if the thread that reserved the packet did not run in between. So the log thins out old
/// observations, instead of dropping all of them.
const MAX_SEEN: usize = 256;

/// The latest observations of one queue's write index.
#[derive(Debug, Default)]
pub(super) struct WriteLog {
    /// Time and write index, in the order in which their events arrived.
    seen: VecDeque<(u64, u64)>,
}

impl WriteLog {
    /// Notes that the write index was read at `time_ns` or later.
    pub(super) fn see(&mut self, time_ns: u64, write_index: u64) {
        match self.seen.back_mut() {
            Some(last) if last.1 == write_index => last.0 = last.0.max(time_ns),
            _ => {
                if self.seen.len() >= MAX_SEEN {
                    self.thin();
                }
                self.seen.push_back((time_ns, write_index));
            }
        }
    }

    /// Drops every second observation of the older half. Indexes bounded by a dropped observation then have an earlier bound.
    fn thin(&mut self) {
        thin_older_half(&mut self.seen, 0);
    }

    /// Returns the latest known time at which `index` was not reserved yet; `None` if there is no such observation.
    pub(super) fn unreserved_ns(&self, index: u64) -> Option<u64> {
        self.seen
            .iter()
            .rev()
            .find(|(_, write_index)| *write_index <= index)
            .map(|(time_ns, _)| *time_ns)
    }
}

/// Drops every second element of the older half, and of each two keeps the first (0) or the second one (1).
pub(super) fn thin_older_half<T: Copy>(log: &mut VecDeque<T>, kept: usize) {
    let quarter = log.len() / 4;
    for at in 0..quarter {
        log[at] = log[2 * at + kept];
    }
    log.drain(quarter..2 * quarter);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_sighting_at_or_below_an_index_bounds_it() {
        let mut log = WriteLog::default();
        assert_eq!(log.unreserved_ns(0), None);
        for (time_ns, write_index) in [(10, 0), (20, 0), (30, 2), (40, 5)] {
            log.see(time_ns, write_index);
        }
        assert_eq!([0, 1, 2, 4, 5, 9].map(|index| log.unreserved_ns(index)), {
            [Some(20), Some(20), Some(30), Some(30), Some(40), Some(40)]
        });
    }

    #[test]
    fn every_second_element_of_the_older_half_goes() {
        for (kept, expected) in [(0, [0, 2, 4, 5, 6, 7]), (1, [1, 3, 4, 5, 6, 7])] {
            let mut log: VecDeque<u32> = (0..8).collect();
            // It may begin anywhere in its memory.
            log.rotate_left(3);
            log.rotate_right(3);
            thin_older_half(&mut log, kept);
            assert_eq!(log, expected);
        }
        let mut short = VecDeque::from([1, 2, 3]);
        thin_older_half(&mut short, 1);
        assert_eq!(short, [1, 2, 3]);
    }

    #[test]
    fn old_sightings_thin_out_and_bounds_stay_true() {
        let mut log = WriteLog::default();
        const SEEN: u64 = 100_000;
        for n in 0..SEEN {
            log.see(n, n);
        }
        assert!(log.seen.len() <= MAX_SEEN);
        // Index n was free at time n, and no longer at n + 1.
        for index in 0..SEEN {
            let bound = log.unreserved_ns(index);
            assert!(bound.is_some_and(|time_ns| time_ns <= index), "{index}: {bound:?}");
        }
        let exact = SEEN - MAX_SEEN as u64 / 4..SEEN;
        assert!(exact.into_iter().all(|index| log.unreserved_ns(index) == Some(index)));
    }
}
