//! Indexes that the GPU took although no observed doorbell had published them.
//!
//! # When an index is unseen
//! The program of a doorbell notes what that doorbell publishes, before the store. A later program, or a thread that samples the
//! queue because it ends it, reads the read index `r` first and then the note `e`. Everything below `r` that an observed doorbell
//! published is then below `e`, even if that doorbell's event was lost. So `e..r` is unseen. A program that ran at the same time
//! could set the note back; but then the event that the note was for has arrived before, if it was not lost. For this reason the
//! model also uses the events.
//!
//! A sample of the collector has no note, and its read index may result from a doorbell whose event has not arrived yet. So the
//! model uses such a sample only at the queue's end, when all events have arrived, and only if none was lost.
//!
//! The index that a doorbell itself names is never unseen, even if the GPU took it before: a GPU that maps a queue again reads the
//! write index by itself, and may be faster than the store.

use std::collections::VecDeque;

use super::queue::{End, Queue};
use crate::event::{Before, Occasion, Progress};
use crate::fact::{self, Fact, Path};

/// The unseen indexes of one queue.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Ranges for which rows may still be created, lowest first.
    ranges: VecDeque<(u64, u64)>,
    /// One past the highest index found.
    end: u64,
    /// Number of indexes in the rows created.
    pub(super) rows: u64,
    /// Lower indexes may have been published before tracer watched the queue; `None` while that is unknown.
    floor: Option<u64>,
    /// Lower indexes may have been published by doorbells of which only the value is known.
    blind_end: u64,
    /// Whether the GPU took an index for which a doorbell may have been lost.
    doubted: bool,
}

/// Samples of one queue.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The last sample of the collector.
    sampled: Option<Progress>,
    /// The last sample of a thread that ends the queue, or of a collector that stops.
    last: Option<Progress>,
    /// The latest of all samples, and whether a row reports it.
    newest: Option<Progress>,
    told: bool,
    /// Time at which the read index was first seen at its current value.
    moved_ns: Option<u64>,
}

impl Unseen {
    /// Notes that nothing from `floor` on was published before tracer watched the queue.
    pub(super) fn set_floor(&mut self, floor: u64) {
        self.floor = Some(floor);
    }

    /// Notes that everything below `floor` may have been published before tracer watched the queue, if the floor is not known yet.
    pub(super) fn set_floor_once(&mut self, floor: u64) {
        self.floor.get_or_insert(floor);
    }

    /// Notes a doorbell of an unknown queue of the process.
    pub(super) fn blind(&mut self, end: u64) {
        self.blind_end = self.blind_end.max(end);
    }

    /// Adds `from..to`, which the GPU took although no doorbell published it.
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

    /// Returns the path of an index, and the end of the indexes with the same path.
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

    /// Forgets ranges for which no row can be created any more.
    pub(super) fn forget_below(&mut self, index: u64) {
        while self.ranges.front().is_some_and(|(_, end)| *end <= index) {
            self.ranges.pop_front();
        }
    }

    /// Starts again, because everything known of the indexes was garbage.
    pub(super) fn restart(&mut self) {
        self.ranges.clear();
        self.end = 0;
        self.floor = None;
    }
}

impl Queue {
    /// Processes the state at the entry of a doorbell.
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

    /// Processes a sample of the queue.
    pub(super) fn look(&mut self, look: &Progress, out: &mut impl FnMut(Fact)) {
        // A queue cannot have read more than was written. Also ignore the sample if it may be of another queue at this address, of
        // which nothing else was seen yet.
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
        // A sample of the collector arrives late. Threads of the process may have sampled the queue since.
        if newest.is_some_and(|newest| look.origin.time_ns < newest.after_ns) {
            return out(self.look_fact(look));
        }
        let moved = newest.is_none_or(|newest| newest.read_index != look.read_index);
        if moved {
            self.looks.moved_ns = Some(look.after_ns);
        }
        let changed = moved || newest.is_none_or(|newest| newest.write_index != look.write_index);
        if changed {
            // The last sample that found the queue unchanged bounds the change from below.
            if let Some(newest) = newest.filter(|_| !self.looks.told) {
                out(self.look_fact(&newest));
            }
            out(self.look_fact(look));
        }
        self.looks.told = changed;
        self.looks.newest = Some(*look);
        self.publish_log.taken(look.read_index);
    }

    /// Returns whether a sample shows that another queue is at this address now: indexes never go back.
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

    /// Draws the conclusions from the samples, when the queue has ended and all its events have arrived. `lost` is whether
    /// doorbells may be missing.
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
            // Lower indexes may have been published before tracer watched the queue, or by a doorbell of an unknown queue.
            self.span.skip_to(start);
            self.span.cover(self.span.end(), end, false);
            self.read_seen = self.read_seen.max(end);
        }
    }

    /// Returns the collector's last sample, if the GPU was beyond what was published. Returns `None` if the sample came after the
    /// queue's end, because then it may be of the next queue at this address.
    fn sampled_beyond(&self) -> Option<Progress> {
        let look = self.looks.sampled.filter(|look| self.saw(look))?;
        let from = self.credited.unwrap_or(0).max(self.unseen.floor?).max(self.unseen.end);
        (look.read_index > from).then_some(look)
    }

    fn saw(&self, look: &Progress) -> bool {
        self.end.is_none_or(|end| look.after_ns <= end.time_ns())
    }

    /// Returns `unseen` of its row.
    pub(super) fn unseen_count(&self) -> Option<u64> {
        let looked = self.looks.newest.is_some() || self.unseen.rows > 0;
        let open = self.unseen.doubted || self.sampled_beyond().is_some();
        (looked && !open).then_some(self.unseen.rows)
    }

    /// Returns `watched_to_end` of its row.
    pub(super) fn watched_to_end(&self) -> bool {
        let Some(last) = self.looks.last.filter(|last| last.origin.time_ns >= self.active_ns) else {
            return false;
        };
        // Packets that are written, but neither taken nor rung for, may still be taken.
        let nothing_left = last.write_index.max(self.reserved_end) <= self.span.end();
        match (last.occasion, self.end) {
            (Occasion::Destroyed, Some(End::Destroyed(_))) => true,
            (Occasion::Destroy, Some(End::Destroyed(_))) | (Occasion::ProcessEnd, Some(_)) => nothing_left,
            (Occasion::TraceEnd, None) => true,
            _ => false,
        }
    }

    /// Returns the state at the last sample: its time, the read index, packets in flight and since when, and when the read index
    /// moved.
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

/// See the fields of [`fact::Queue`] with the same names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub(super) looked_ns: Option<u64>,
    pub(super) read_index: Option<u64>,
    pub(super) in_flight: Option<u64>,
    pub(super) oldest_ns: Option<u64>,
    pub(super) moved_ns: Option<u64>,
}
