//! Assigns events to queues, over creations, destructions and reuse of addresses.
//!
//! A queue is identified by its process and the address of its write pointer. Records of different kinds come through different
//! buffers, so an event can arrive after the end of its queue, or even after the creation of the next queue at the same address.
//! For this reason a queue lingers for [`super::LINGER_NS`] of trace time after its end before its final numbers are reported, and
//! times distinguish the queues of one address. An event that is later than that adopts a new queue.

use std::collections::VecDeque;

use tracer_common::kfd::QueueType;

use super::ioctls::CreateQueue;
use super::queue::{End, Queue, Sight};
use super::queue_origin::{Creator, Creators};
use super::{lingered, loss, write_pointer};
use crate::event::{HsaQueue, Packets, Progress, Reserve};
use crate::losses::QUEUE_LIMIT;
use crate::tables::Fact;
use crate::tally::Map;

/// Largest number of queues kept. The addresses of adopted queues come from the traced process, which could invent them.
const MAX_QUEUES: usize = 65536;
/// Largest number of reserves kept that arrived before their queue was known.
const MAX_EARLY: usize = 64;

/// A queue's process and the address of its write pointer.
type Key = (u32, u64);
/// Queues that ended, in the order in which their ends were seen: time, key and number.
type Ended = VecDeque<(u64, (Key, u32))>;

/// Every queue that exists or lingers.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Queues by address; for one address, the youngest last. No entry is empty.
    by_key: Map<Key, Vec<Queue>>,
    ended: Ended,
    /// Number of queues that exist or linger.
    count: usize,
    /// Number of the next queue.
    next: u32,
    /// Reserves that arrived before their queue was known.
    early: VecDeque<Reserve>,
    /// Creators of the queues.
    pub(super) creators: Creators,
    /// Whether doorbells may have been lost, on any queue.
    pub(super) doorbells_lost: bool,
    /// Changes whenever a queue begins or ends.
    pub(super) revision: u64,
}

impl Queues {
    /// Returns the queue that an event belongs to. Adopts an unknown queue. Returns `None` only if there are too many queues.
    pub(super) fn at_or_adopt(&mut self, sight: &Sight) -> Option<&mut Queue> {
        let Sight { origin, question, .. } = *sight;
        let key = (origin.pid, sight.write_pointer);
        let read_index = question.map(|(read_index, _)| read_index);
        let at = self.by_key.get(&key).and_then(|queues| {
            let at = position(queues, origin.time_ns)?;
            (!queues[at].was_replaced(origin.time_ns, read_index)).then_some(at)
        });
        if let Some(at) = at {
            return self.by_key.get_mut(&key)?.get_mut(at);
        }
        self.revision += 1;
        let queue = self.make(key, |number| Queue::adopted(number, sight))?;
        let queues = self.by_key.entry(key).or_default();
        if let Some(old) = queues.last_mut().filter(|old| old.end.is_none()) {
            end(old, End::Destroyed(origin.time_ns), &mut self.ended);
        }
        Some(queues.push_mut(queue))
    }

    /// Processes a successful CREATE_QUEUE.
    pub(super) fn create(&mut self, pid: u32, create: CreateQueue, out: &mut impl FnMut(Fact)) {
        self.revision += 1;
        let creator = self.creators.of_new(pid);
        let key = (pid, create.write_pointer);
        if let Some(last) = self.by_key.get_mut(&key).and_then(|queues| queues.last_mut()) {
            // No doorbell can be rung before the queue is created: the doorbell's record overtook the ioctl's.
            if last.created.is_none() && last.created_ns >= create.enter_ns {
                return last.complete(create, creator, out);
            }
            // An address belongs to one queue. The end of the former queue was lost, or has not arrived yet.
            if last.end.is_none() {
                end(last, End::Destroyed(create.enter_ns), &mut self.ended);
            }
        }
        match self.make(key, |number| Queue::created(number, pid, create, creator)) {
            Some(queue) => self.by_key.entry(key).or_default().push(queue),
            None => out(loss(create.exit_ns, QUEUE_LIMIT, 1)),
        }
    }

    /// Notes that a program created a queue.
    pub(super) fn made(&mut self, event: &HsaQueue) {
        let pid = event.origin.pid;
        match self.at(pid, write_pointer(event.handle), event.exit_ns) {
            Some(queue) if event.handle != 0 => queue.creator = Creator::Program,
            _ => {
                self.creators.attached(pid);
                let others = of(&mut self.by_key, pid).filter(|queue| queue.creator == Creator::NotSeen);
                others.for_each(|queue| queue.creator = Creator::Unknown);
            }
        }
    }

    /// Processes a successful DESTROY_QUEUE.
    pub(super) fn destroy(&mut self, pid: u32, queue_id: u32, enter_ns: u64, exit_ns: u64) {
        self.revision += 1;
        let is_it = |queue: &&mut Queue| {
            queue.end.is_none()
                && match queue.created {
                    Some(create) => create.queue_id == Some(queue_id) && create.exit_ns <= enter_ns,
                    None => queue.kfd.queue_id == Some(queue_id),
                }
        };
        // The KFD can reuse an id before the record of its release is written, so the oldest queue with that id is meant.
        let matching = of(&mut self.by_key, pid).filter(is_it);
        if let Some(queue) = matching.min_by_key(|queue| queue.number) {
            end(queue, End::Destroyed(exit_ns), &mut self.ended);
        }
    }

    /// Ends the queues of a process that exited, or that left its address space.
    pub(super) fn end_process(&mut self, pid: u32, by: End) {
        self.revision += 1;
        let open = of(&mut self.by_key, pid).filter(|queue| queue.end.is_none());
        let mut open: Vec<&mut Queue> = open.collect();
        open.sort_unstable_by_key(|queue| queue.number);
        for queue in open {
            end(queue, by, &mut self.ended);
        }
    }

    /// Processes an advance of a write index by a producer.
    pub(super) fn reserve(&mut self, event: &Reserve, out: &mut impl FnMut(Fact)) {
        let origin = event.origin;
        if let Some(queue) = self.at(origin.pid, write_pointer(event.handle), origin.time_ns) {
            return queue.reserve(event, out);
        }
        // The queue may never become known: queues that no GPU reads have write indexes, too.
        if self.early.len() >= MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(*event);
    }

    /// Returns the queue at an address at a time.
    pub(super) fn at(&mut self, pid: u32, write_pointer: u64, time_ns: u64) -> Option<&mut Queue> {
        let queues = self.by_key.get_mut(&(pid, write_pointer))?;
        let at = position(queues, time_ns)?;
        queues.get_mut(at)
    }

    /// Processes a sample of a queue. Ignores a sample of an unknown queue.
    pub(super) fn sample(&mut self, sample: &Progress, out: &mut impl FnMut(Fact)) {
        let lost = self.doorbells_lost;
        let queue = self.at(sample.origin.pid, write_pointer(sample.handle), sample.origin.time_ns);
        if let Some(queue) = queue.filter(|queue| queue.kind == QueueType::ComputeAql) {
            queue.sample(sample, lost, out);
        }
    }

    /// Keeps packets that the GPU took from a queue. Ignores those of an unknown queue.
    pub(super) fn taken(&mut self, event: &Packets<'_>) {
        if let Some(queue) = self.at(event.origin.pid, write_pointer(event.handle), event.origin.time_ns) {
            queue.taken(event);
        }
    }

    /// Processes a doorbell of an unknown queue of a process, for everything below `end`.
    pub(super) fn blind(&mut self, pid: u32, end: u64) {
        of(&mut self.by_key, pid).for_each(|queue| queue.blind(end));
    }

    /// Reports queues as facts that ended long enough ago.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        while let Some((end, (key, number))) = lingered(&mut self.ended, now) {
            if let Some(queue) = self.take(key, number) {
                queue.close(end, self.doorbells_lost, self.creators.are_known(), out);
            }
        }
    }

    /// Ends the trace: reports every queue as a fact.
    pub(super) fn finish(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.ended.clear();
        self.count = 0;
        let mut all: Vec<Queue> = self.by_key.drain().flat_map(|(_, queues)| queues).collect();
        all.sort_unstable_by_key(|queue| queue.number);
        for queue in all {
            let end = queue.end.map_or(now, End::time_ns);
            queue.close(end, self.doorbells_lost, self.creators.are_known(), out);
        }
    }

    /// Returns the youngest queue of an address.
    pub(super) fn last(&self, pid: u32, write_pointer: u64) -> Option<&Queue> {
        self.by_key.get(&(pid, write_pointer))?.last()
    }

    /// Returns the queues that are known now.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_key.values().flatten()
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

    /// Returns the number of the next queue; `None` if there are no more numbers.
    pub(super) fn number(&mut self) -> Option<u32> {
        let number = self.next;
        self.next = number.checked_add(1)?;
        Some(number)
    }

    /// Creates a queue. Returns `None` if there are too many queues.
    fn make(&mut self, key: Key, new: impl FnOnce(u32) -> Queue) -> Option<Queue> {
        if self.count >= MAX_QUEUES {
            return None;
        }
        let mut queue = new(self.number()?);
        self.count += 1;
        self.early.retain(|event| {
            let mine = (event.origin.pid, write_pointer(event.handle)) == key;
            if mine {
                if let Some(write_index) = event.write_index {
                    queue.reserved_early(write_index);
                }
                // No fact waits for a doorbell yet, so this call reports none.
                queue.reserve(event, &mut |_| ());
            }
            !mine
        });
        Some(queue)
    }
}

/// Returns the queues of a process.
fn of(by_key: &mut Map<Key, Vec<Queue>>, pid: u32) -> impl Iterator<Item = &mut Queue> {
    by_key.values_mut().flatten().filter(move |queue| queue.pid == pid)
}

/// Ends a queue, which lingers from then on.
fn end(queue: &mut Queue, by: End, ended: &mut Ended) {
    queue.end = Some(by);
    ended.push_back((by.time_ns(), ((queue.pid, queue.write_pointer), queue.number)));
}

/// Returns which of the queues of one address, youngest last, an event of this time belongs to.
fn position(queues: &[Queue], time_ns: u64) -> Option<usize> {
    let mut at = queues.len().checked_sub(1)?;
    // After the destruction of the youngest queue, the event belongs to a queue whose creation tracer did not see.
    if matches!(queues[at].end, Some(End::Destroyed(end)) if time_ns > end) {
        return None;
    }
    while at > 0 && time_ns < queues[at].begin_ns() {
        // The beginning of an adopted queue is only the first event that arrived. An earlier event can belong to it, too.
        let older_ended_before = queues[at - 1].end.is_some_and(|end| time_ns > end.time_ns());
        if queues[at].created.is_none() && older_ended_before {
            break;
        }
        at -= 1;
    }
    Some(at)
}
