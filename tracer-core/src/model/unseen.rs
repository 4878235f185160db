//! Indexes that the GPU took although no doorbell that was seen had published them.
//!
//! # When an index is unseen
//! The program of a doorbell notes what that doorbell publishes, before the store. So when a later program, or the look
//! of a thread that ends the queue, reads the read index `r` first and then the note `e`, everything below `r` that a
//! seen doorbell published is below `e`, also if that doorbell's event was lost: `e..r` is unseen. The note alone could be
//! set back by a program that ran at the same time; but then the event that it was for has come before, if it was not
//! lost. So what events say counts, too.
//!
//! A look of the collector knows no note, and its read index may owe to a doorbell whose event is still to come. So
//! nothing follows from it but at the queue's end, when all have come, and only if none was lost.
//!
//! The index that a doorbell itself names is never unseen, even if the GPU took it before: a GPU that maps a queue again
//! reads the write index by itself, and may be faster than the store.

use std::collections::VecDeque;

use super::queue::{End, Queue};
use crate::event::{Before, Occasion, Progress};
use crate::fact::{self, Fact, Path};

/// Which indexes of one queue are unseen.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Ranges that rows may still come of, lowest first.
    ranges: VecDeque<(u64, u64)>,
    /// One past the highest that was found.
    end: u64,
    /// Rows made: indexes.
    pub(super) rows: u64,
    /// Lower indexes may have been published before anybody watched; `None` as long as that is not known.
    floor: Option<u64>,
    /// Lower indexes may have been published by doorbells of which only the value is known.
    blind_end: u64,
    /// Something was taken of which nobody can say whether a doorbell was lost.
    doubted: bool,
}

/// Looks at one queue.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The last one of the collector.
    sampled: Option<Progress>,
    /// The last one of a thread that ends the queue, or of a collector that stops.
    last: Option<Progress>,
    /// The last one of all, and whether a row tells of it.
    newest: Option<Progress>,
    told: bool,
    /// When the read index was first seen where it is.
    moved_ns: Option<u64>,
}

impl Unseen {
    /// Nothing from `floor` on was published before anybody watched.
    pub(super) fn set_floor(&mut self, floor: u64) {
        self.floor = Some(floor);
    }

    /// Everything below `floor` may have been published before anybody watched, if nothing is known of that yet.
    pub(super) fn set_floor_once(&mut self, floor: u64) {
        self.floor.get_or_insert(floor);
    }

    /// Somebody rang, nobody knows on which queue of the process.
    pub(super) fn blind(&mut self, end: u64) {
        self.blind_end = self.blind_end.max(end);
    }

    /// Everything of `from..to` was taken, and no doorbell published it.
    fn add(&mut self, from: u64, to: u64) {
        let Some(floor) = self.floor else { return };
        let mut from = from.max(floor).max(self.end);
        if from < to && from < self.blind_end {
            self.doubted = true;
            from = self.blind_end;
        }
        if from >= to {
            return;
        }
        self.end = to;
        match self.ranges.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.ranges.push_back((from, to)),
        }
    }

    /// The way of an index, and up to where it is the same.
    pub(super) fn path(&self, index: u64) -> (Path, u64) {
        if self.ranges.is_empty() {
            return (Path::Doorbell, u64::MAX);
        }
        let at = self.ranges.partition_point(|(_, end)| *end <= index);
        match self.ranges.get(at) {
            Some((start, end)) if *start <= index => (Path::Unseen, *end),
            Some((start, _)) => (Path::Doorbell, *start),
            None => (Path::Doorbell, u64::MAX),
        }
    }

    /// Forgets ranges of which no row can come any more.
    pub(super) fn forget_below(&mut self, index: u64) {
        while self.ranges.front().is_some_and(|(_, end)| *end <= index) {
            self.ranges.pop_front();
        }
    }

    /// The indexes begin anew: what was known of them was garbage.
    pub(super) fn restart(&mut self) {
        self.ranges.clear();
        self.end = 0;
        self.floor = None;
    }
}

impl Queue {
    /// What was so at the entry of a doorbell.
    pub(super) fn before(&mut self, before: Option<Before>) {
        if let Some(Before {
            rung_end,
            value,
            read_index,
        }) = before
        {
            let from = rung_end.max(self.credited.unwrap_or(0));
            self.unseen.add(from, read_index.min(value));
        }
    }

    /// Somebody looked at the queue.
    pub(super) fn look(&mut self, look: &Progress, out: &mut impl FnMut(Fact)) {
        // No queue has read more than was written; and a queue of which nothing else was seen yet may lie there now.
        if look.read_index > look.write_index || self.is_elsewhere(look) {
            return;
        }
        self.unseen.set_floor_once(look.write_index);
        if look.occasion != Occasion::Sample {
            self.looks.last = Some(*look);
        }
        if let Some(rung_end) = look.rung_end {
            let from = rung_end.max(self.credited.unwrap_or(0));
            self.unseen.add(from, look.read_index);
        } else if self.looks.sampled.is_none_or(|old| old.after_ns <= look.after_ns) {
            self.looks.sampled = Some(*look);
        }
        if !matches!(look.occasion, Occasion::Sample | Occasion::TraceEnd) {
            self.seen_indexes(look);
        }
        let newest = self.looks.newest;
        // A collector's look comes late: threads of the process may have looked since.
        if newest.is_some_and(|newest| look.origin.time_ns < newest.after_ns) {
            return out(self.look_fact(look));
        }
        let moved = newest.is_none_or(|newest| newest.read_index != look.read_index);
        if moved {
            self.looks.moved_ns = Some(look.after_ns);
        }
        let changed = moved || newest.is_none_or(|newest| newest.write_index != look.write_index);
        if changed {
            // The last look that found it where it was bounds the change from below.
            if let Some(newest) = newest.filter(|_| !self.looks.told) {
                out(self.look_fact(&newest));
            }
            out(self.look_fact(look));
        }
        self.looks.told = changed;
        self.looks.newest = Some(*look);
        self.publish_log.taken(look.read_index);
    }

    /// Whether a look shows that another queue lies there now: indexes never go back.
    fn is_elsewhere(&self, look: &Progress) -> bool {
        match self.looks.newest {
            Some(newest) if look.origin.time_ns >= newest.after_ns => {
                look.read_index < newest.read_index || look.write_index < newest.write_index
            }
            Some(_) => false,
            None => self.was_replaced(look.origin.time_ns, Some(look.read_index)),
        }
    }

    fn look_fact(&self, look: &Progress) -> Fact {
        Fact::Progress(fact::Progress {
            queue: self.number,
            pid: self.pid,
            time_ns: look.origin.time_ns,
            until_ns: look.after_ns,
            occasion: look.occasion,
            read_index: look.read_index,
            write_index: look.write_index,
            published_end: self.publish_log.end_at(look.origin.time_ns),
        })
    }

    fn seen_indexes(&mut self, look: &Progress) {
        self.read_seen = self.read_seen.max(look.read_index);
        self.write_seen = self.write_seen.max(look.write_index);
    }

    /// The queue is over, and every event of it has come: what follows from the looks. `lost`: doorbells may be missing.
    pub(super) fn conclude_looks(&mut self, lost: bool) {
        if let Some(look) = self.sampled_beyond() {
            if lost {
                self.unseen.doubted = true;
            } else {
                self.unseen.add(self.credited.unwrap_or(0), look.read_index);
            }
        }
        if let Some(look) = self.looks.sampled.take().filter(|look| self.saw(look)) {
            self.seen_indexes(&look);
        }
        for (start, end) in self
            .unseen
            .ranges
            .iter()
            .filter(|(_, end)| *end > self.span.end())
            .copied()
            .collect::<Vec<_>>()
        {
            // What lies before it may have been published before anybody watched, or by a doorbell of an unknown queue.
            self.span.skip_to(start);
            self.span.cover(self.span.end(), end, false);
            self.read_seen = self.read_seen.max(end);
        }
    }

    /// The collector's last look, if the GPU was beyond what was published; nothing if the look came after the queue's end,
    /// because then it may have been one at the next queue there.
    fn sampled_beyond(&self) -> Option<Progress> {
        let look = self.looks.sampled.filter(|look| self.saw(look))?;
        let from = self.credited.unwrap_or(0).max(self.unseen.floor?).max(self.unseen.end);
        (look.read_index > from).then_some(look)
    }

    fn saw(&self, look: &Progress) -> bool {
        self.end.is_none_or(|end| look.after_ns <= end.time_ns())
    }

    /// `unseen` of its row.
    pub(super) fn unseen_count(&self) -> Option<u64> {
        let looked = self.looks.newest.is_some() || self.unseen.rows > 0;
        let open = self.unseen.doubted || self.sampled_beyond().is_some();
        (looked && !open).then_some(self.unseen.rows)
    }

    /// `watched_to_end` of its row.
    pub(super) fn watched_to_end(&self) -> bool {
        let Some(last) = self.looks.last.filter(|last| last.origin.time_ns >= self.active_ns) else {
            return false;
        };
        // What is written, and neither taken nor rung for, may still be taken.
        let nothing_left = last.write_index.max(self.reserved_end) <= self.span.end();
        match (last.occasion, self.end) {
            (Occasion::Destroyed, Some(End::Destroyed(_))) => true,
            (Occasion::Destroy, Some(End::Destroyed(_))) | (Occasion::ProcessEnd, Some(_)) => nothing_left,
            (Occasion::TraceEnd, None) => true,
            _ => false,
        }
    }

    /// What the last look says: when, read index, in flight, since when, and when it moved.
    pub(super) fn standing(&self) -> Standing {
        let looks = [self.looks.newest, self.looks.last];
        let Some(look) = looks.into_iter().flatten().find(|look| self.saw(look)) else {
            return Standing::default();
        };
        let published = self.publish_log.end_at(look.origin.time_ns);
        let in_flight = published.map(|end| end.saturating_sub(look.read_index));
        Standing {
            looked_ns: Some(look.after_ns),
            read_index: Some(look.read_index),
            in_flight,
            oldest_ns: in_flight
                .filter(|&n| n > 0)
                .and_then(|_| self.publish_log.published_ns(look.read_index)),
            moved_ns: self.looks.moved_ns,
        }
    }
}

/// See the fields of [`fact::Queue`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub(super) looked_ns: Option<u64>,
    pub(super) read_index: Option<u64>,
    pub(super) in_flight: Option<u64>,
    pub(super) oldest_ns: Option<u64>,
    pub(super) moved_ns: Option<u64>,
}
