//! Which queue an event belongs to, over creations, destructions and reuse of addresses.
//!
//! A queue is known by its process and its write pointer's address. Records of different kinds come through different
//! buffers, so an event can arrive after the end of its queue did, or even after the next queue's beginning at the same
//! address. So a queue that ended lingers for [`LINGER_NS`] of trace time before its final numbers come out, and times
//! decide between the queues of one address. A later event than that adopts a new queue.

use std::collections::{HashMap, VecDeque};

use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::queue::{End, Queue};
use super::{LINGER_NS, MAX_LINGERING};
use crate::event::{Origin, Reserve};
use crate::fact::Fact;

/// Queues kept at the most. The addresses of adopted ones come from the traced process, which could invent them.
const MAX_QUEUES: usize = 65536;
/// Reserves kept that came before their queue was known.
const MAX_EARLY: usize = 64;

/// A queue's process and the address of its write pointer.
pub(super) type Key = (u32, u64);

/// Every queue that lives or lingers.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Those of one address, youngest last. Never empty.
    by_key: HashMap<Key, Vec<Queue>>,
    count: usize,
    next: u32,
    /// Ended ones, in the order in which their ends were seen.
    ended: VecDeque<(u64, Key, u32)>,
    early: VecDeque<(u64, Reserve)>,
}

impl Queues {
    /// The queue that an event of this time belongs to.
    pub(super) fn at(&mut self, key: Key, time_ns: u64) -> Option<&mut Queue> {
        let queues = self.by_key.get_mut(&key)?;
        let at = position(queues, time_ns)?;
        queues.get_mut(at)
    }

    /// The same; an unknown one is adopted. `None` only if there are absurdly many.
    pub(super) fn at_or_adopt(&mut self, key: Key, origin: Origin, kind: QueueType, first: u64) -> Option<&mut Queue> {
        // Looked up twice on adoption only: returning a borrow early is beyond the borrow checker.
        if self.at(key, origin.time_ns).is_none() {
            self.push(key, |number| Queue::adopted(number, origin, key.1, kind, first))?;
        }
        self.at(key, origin.time_ns)
    }

    /// A CREATE_QUEUE succeeded. False if there are absurdly many queues.
    pub(super) fn create(&mut self, pid: u32, create: CreateQueue) -> bool {
        let key = (pid, create.write_pointer);
        if let Some(last) = self.by_key.get_mut(&key).and_then(|queues| queues.last_mut()) {
            // Nobody rings on a queue before it is created: its doorbell overtook the ioctl's record.
            if last.created.is_none() && last.created_ns >= create.enter_ns {
                last.complete(create);
                return true;
            }
            // An address holds one queue. The end of the former one was lost, or is still to come.
            if last.end.is_none() {
                let number = last.number;
                last.end = Some(End::Destroyed(create.enter_ns));
                self.ended.push_back((create.enter_ns, key, number));
            }
        }
        self.push(key, |number| Queue::created(number, pid, create)).is_some()
    }

    /// A DESTROY_QUEUE succeeded.
    pub(super) fn destroy(&mut self, pid: u32, queue_id: u32, enter_ns: u64, exit_ns: u64) {
        let is_it = |queue: &&mut Queue| {
            queue.pid == pid
                && queue.end.is_none()
                && queue
                    .created
                    .is_some_and(|create| create.queue_id == Some(queue_id) && create.exit_ns <= enter_ns)
        };
        // The KFD can give an id again before the record of its release is written: the oldest of that id is meant.
        if let Some(queue) = self
            .by_key
            .values_mut()
            .flatten()
            .filter(is_it)
            .min_by_key(|queue| queue.number)
        {
            queue.end = Some(End::Destroyed(exit_ns));
            self.ended
                .push_back((exit_ns, (pid, queue.write_pointer), queue.number));
        }
    }

    /// A process ended, or left its address space: so do its queues.
    pub(super) fn end_process(&mut self, pid: u32, end: End) {
        let mut numbers: Vec<(u32, u64)> = Vec::new();
        for queue in self
            .by_key
            .values_mut()
            .flatten()
            .filter(|queue| queue.pid == pid && queue.end.is_none())
        {
            queue.end = Some(end);
            numbers.push((queue.number, queue.write_pointer));
        }
        numbers.sort_unstable();
        self.ended.extend(
            numbers
                .into_iter()
                .map(|(number, pointer)| (end.time_ns(), (pid, pointer), number)),
        );
    }

    /// A producer moves a write index. Of an unknown queue it is kept until the queue is known, if it will ever be: also
    /// queues that no GPU reads have write indexes.
    pub(super) fn reserve(&mut self, key: Key, event: &Reserve, out: &mut impl FnMut(Fact)) {
        if let Some(queue) = self.at(key, event.origin.time_ns) {
            return queue.reserve(event, out);
        }
        if self.early.len() >= MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back((key.1, *event));
    }

    /// Queues that ended long enough ago become facts.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        while let Some(&(end, key, number)) = self.ended.front() {
            if end.saturating_add(LINGER_NS) > now && self.ended.len() <= MAX_LINGERING {
                return;
            }
            self.ended.pop_front();
            if let Some(queue) = self.take(key, number) {
                queue.close(end, out);
            }
        }
    }

    /// The trace ends: every queue becomes a fact.
    pub(super) fn finish(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.ended.clear();
        self.count = 0;
        let mut all: Vec<Queue> = self.by_key.drain().flat_map(|(_, queues)| queues).collect();
        all.sort_unstable_by_key(|queue| queue.number);
        for queue in all {
            let end = queue.end.map_or(now, End::time_ns);
            queue.close(end, out);
        }
    }

    /// The youngest queue of an address.
    pub(super) fn last(&self, key: Key) -> Option<&Queue> {
        self.by_key.get(&key)?.last()
    }

    /// Those known now.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_key.values().flatten()
    }

    fn push(&mut self, key: Key, make: impl FnOnce(u32) -> Queue) -> Option<()> {
        if self.count >= MAX_QUEUES {
            return None;
        }
        let mut queue = make(self.next);
        self.next = self.next.checked_add(1)?;
        self.count += 1;
        let mine = |early: &(u64, Reserve)| (early.1.origin.pid, early.0) == key;
        for (_, event) in self.early.iter().filter(|early| mine(early)) {
            queue.reserve(event, &mut |_| ());
        }
        self.early.retain(|early| !mine(early));
        self.by_key.entry(key).or_default().push(queue);
        Some(())
    }

    fn take(&mut self, key: Key, number: u32) -> Option<Queue> {
        let queues = self.by_key.get_mut(&key)?;
        let at = queues.iter().position(|queue| queue.number == number)?;
        let queue = queues.remove(at);
        if queues.is_empty() {
            self.by_key.remove(&key);
        }
        self.count = self.count.saturating_sub(1);
        Some(queue)
    }
}

/// Which of the queues of one address, youngest last, an event of this time belongs to.
fn position(queues: &[Queue], time_ns: u64) -> Option<usize> {
    let mut at = queues.len().checked_sub(1)?;
    // After the youngest's destruction: a queue whose creation was not seen.
    if matches!(queues[at].end, Some(End::Destroyed(end)) if time_ns > end) {
        return None;
    }
    while at > 0 && time_ns < queues[at].begin_ns() {
        // The beginning of an adopted queue is only the first event that came: an earlier one can be its own, too.
        let older_ended_before = queues[at - 1].end.is_some_and(|end| time_ns > end.time_ns());
        if queues[at].created.is_none() && older_ended_before {
            break;
        }
        at -= 1;
    }
    Some(at)
}
