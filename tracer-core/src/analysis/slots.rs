//! Compute queues that existed at once, against those that a GPU runs at once.

use std::collections::{BTreeMap, HashMap};

use super::findings::Finding;
use crate::tables::Queue;

/// Number of queues that are followed.
const MAX_QUEUES: usize = 65_536;

/// Follows the lives of compute queues.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// Queues that each GPU runs at once, by gpu id.
    pub slots: BTreeMap<u32, u32>,
    /// GPU, creation and end of each queue.
    lives: HashMap<u32, (u32, u64, u64)>,
}

impl Counter {
    pub(super) fn queue(&mut self, queue: &Queue) {
        let Some(gpu_id) = queue.gpu_id.filter(|_| !queue.is_sdma()) else {
            return;
        };
        if self.lives.len() < MAX_QUEUES || self.lives.contains_key(&queue.queue) {
            let end = queue.destroyed_ns.unwrap_or(u64::MAX);
            self.lives.insert(queue.queue, (gpu_id, queue.created_ns, end));
        }
    }

    /// Returns a finding for each GPU that had more queues at a time than it runs at once.
    pub(super) fn finish(&self) -> Vec<Finding> {
        let mut changes: BTreeMap<u32, Vec<(u64, i64)>> = BTreeMap::new();
        for &(gpu_id, created, end) in self.lives.values() {
            changes.entry(gpu_id).or_default().extend([(created, 1), (end, -1)]);
        }
        let oversubscribed = |(gpu_id, mut changes): (u32, Vec<(u64, i64)>)| {
            // At equal times, an end comes before a creation.
            changes.sort_unstable();
            let slots = u64::from(*self.slots.get(&gpu_id)?);
            let mut now = 0_i64;
            let most = changes.iter().map(|(_, change)| {
                now += change;
                now
            });
            let queues = most.max().map_or(0, i64::cast_unsigned);
            (slots > 0 && queues > slots).then_some(Finding::Oversubscribed { gpu_id, queues, slots })
        };
        changes.into_iter().filter_map(oversubscribed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn findings(slots: u32, lives: &[(u64, Option<u64>)]) -> Vec<Finding> {
        let mut counter = Counter {
            slots: BTreeMap::from([(1, slots)]),
            ..Counter::default()
        };
        for (number, &(created_ns, destroyed_ns)) in (0..).zip(lives) {
            let queue = Queue {
                queue: number,
                gpu_id: Some(1),
                created_ns,
                destroyed_ns,
                ..sample::queue(0)
            };
            counter.queue(&queue);
            // A later row of the same queue replaces the first one. Copies run on other engines.
            counter.queue(&queue);
            counter.queue(&Queue {
                queue: 100 + number,
                kind: "sdma".to_owned(),
                ..queue
            });
        }
        counter.finish()
    }

    #[test]
    fn only_queues_of_the_same_time_count() {
        let lives = [(10, Some(20)), (20, Some(40)), (30, None)];
        assert_eq!(findings(2, &lives), []);
        let found = Finding::Oversubscribed {
            gpu_id: 1,
            queues: 2,
            slots: 1,
        };
        assert_eq!(findings(1, &lives), [found]);
        // 0 is what a CPU has, and says nothing.
        assert_eq!(findings(0, &lives), []);
    }
}
