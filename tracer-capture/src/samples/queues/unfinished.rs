//! Queues whose last packets the GPU was perhaps taking when they were read.
//!
//! The GPU sets a packet's header to INVALID before its read index passes the packet. In between, the slot looks as if its packet
//! was still to be written. The read for the next doorbell shows which it was, but the last doorbell has no next one. So such a
//! queue is read again without a doorbell: after pauses that double, and before the queue can end.

use std::time::{Duration, Instant};

use tracer_core::event::Event;

use super::{MAX_QUEUES, PATIENCE, Queues, Rung};
use crate::decode::fetch::Fetch;

/// The time after which a queue is read again.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest time. A program may ring for packets that it never writes.
const LONGEST_PAUSE: Duration = Duration::from_millis(512);

/// A queue that is to be read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfinished {
    /// The last doorbell whose packets were read.
    rung: Rung,
    /// The address of the queue.
    pub(super) queue: u64,
    due: Instant,
    pause: Duration,
}

impl Queues {
    /// Notes whether the packets before `end` were final when they were read for this doorbell.
    pub(super) fn note_unfinished(&mut self, rung: Rung, queue: u64, end: u64, pause: Duration) {
        let extent = self.extents.get(&(rung.origin.pid, queue));
        if extent.is_none_or(|extent| extent.low >= end) {
            self.unfinished.remove(&rung.key());
            return;
        }
        if self.unfinished.len() >= MAX_QUEUES && !self.unfinished.contains_key(&rung.key()) {
            self.unfinished.clear();
        }
        let pause = pause.clamp(FIRST_PAUSE, LONGEST_PAUSE);
        let due = Instant::now() + pause;
        self.unfinished.insert(
            rung.key(),
            Unfinished {
                rung,
                queue,
                due,
                pause,
            },
        );
    }

    /// Reads the queues that are due. Their packets count as those of their last doorbells.
    pub(super) fn read_due(&mut self, now: Instant, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.read_those(|_, unfinished| unfinished.due <= now, memory, sink);
    }

    /// Reads the queues of a process again, because one of them ends.
    pub fn finish(&mut self, pid: u32, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.read_those(|of, _| of == pid, memory, sink);
    }

    /// Reads all queues again, because the recording ends.
    pub fn finish_all(&mut self, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.read_those(|_, _| true, memory, sink);
    }

    /// Reads these queues again, those first that are due first.
    fn read_those(
        &mut self,
        is_it: impl Fn(u32, &Unfinished) -> bool,
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        if self.unfinished.is_empty() {
            return;
        }
        let those = self.unfinished.iter().filter(|((pid, _), one)| is_it(*pid, one));
        let mut those: Vec<Unfinished> = those.map(|(_, one)| *one).collect();
        those.sort_by_key(|one| (one.rung.origin.pid, one.due));
        let mut turn = (0, Instant::now());
        for one in those {
            // A process can delay each read of its memory.
            if turn.0 != one.rung.origin.pid {
                turn = (one.rung.origin.pid, Instant::now());
            }
            if turn.1.elapsed() < PATIENCE {
                self.read_again(&one, memory, sink);
            }
        }
    }

    fn read_again(&mut self, unfinished: &Unfinished, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        let Unfinished { rung, pause, .. } = *unfinished;
        let (before, packets) = (self.copied.len(), self.packets.len());
        // What cannot be read, or has another queue at its place, is not read again.
        self.unfinished.remove(&rung.key());
        if let Ok((found, range, ..)) = self.read_queue(rung.key(), rung.value, rung.value, memory) {
            self.hand_over_packets(&rung, &found, range, (before, self.copied.len()), sink);
            self.note_unfinished(rung, found.queue, range.end, pause * 2);
        }
        self.copied.truncate(before);
        self.packets.truncate(packets);
    }
}
