//! Runs of doorbells.

use std::collections::HashMap;

use super::{MAX_QUEUES, WINDOW_NS};
use crate::tables::{Doorbell, DoorbellRun};

/// Open runs, one for each queue and process.
#[derive(Debug, Default)]
pub(super) struct Doorbells {
    open: HashMap<(Option<u32>, u32), DoorbellRun>,
}

impl Doorbells {
    /// Returns false if the doorbell claims to publish more packets than there are indexes up to its value.
    pub(super) fn add(&mut self, doorbell: &Doorbell, out: &mut impl FnMut(DoorbellRun)) -> bool {
        let Some(single) = single(doorbell) else { return false };
        let key = (doorbell.queue, doorbell.pid);
        if self.open.len() >= MAX_QUEUES && !self.open.contains_key(&key) {
            self.flush(out);
        }
        match self.open.get_mut(&key) {
            Some(run) if run.takes(&single) => run.join(&single),
            Some(run) => out(std::mem::replace(run, single)),
            None => drop(self.open.insert(key, single)),
        }
        true
    }

    pub(super) fn flush(&mut self, out: &mut impl FnMut(DoorbellRun)) {
        self.open.drain().map(|(_, run)| run).for_each(out);
    }
}

fn single(doorbell: &Doorbell) -> Option<DoorbellRun> {
    let first_index = match doorbell.published {
        0 => None,
        published => Some(doorbell.value.checked_add(1)?.checked_sub(published)?),
    };
    Some(DoorbellRun {
        queue: doorbell.queue,
        pid: doorbell.pid,
        beyond: doorbell.beyond,
        count: 1,
        highest_value: doorbell.value,
        published: doorbell.published,
        first_index,
        last_index: first_index.map(|_| doorbell.value),
        begin_ns: doorbell.time_ns,
        end_ns: doorbell.time_ns,
    })
}

impl DoorbellRun {
    /// Returns whether `other`, a run of the same queue, continues this one: the indexes that it published, if any, begin where
    /// this one ends.
    fn takes(&self, other: &Self) -> bool {
        let follows = match (self.last_index, other.first_index) {
            (Some(last), Some(first)) => last.checked_add(1) == Some(first),
            _ => true,
        };
        follows
            && self.beyond == other.beyond
            && self.end_ns.max(other.end_ns) - self.begin_ns.min(other.begin_ns) < WINDOW_NS
    }

    fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.highest_value = self.highest_value.max(other.highest_value);
        self.published += other.published;
        self.first_index = self.first_index.or(other.first_index);
        self.last_index = other.last_index.or(self.last_index);
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}
