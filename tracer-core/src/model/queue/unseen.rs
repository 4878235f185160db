//! Indexes that the GPU took although no observed doorbell had published them.
//!
//! # When an index is unseen
//! The program of a doorbell notes what that doorbell publishes, before the store. A later program, or a thread that samples the
//! queue because it ends it, reads the read index `r` first and then the note `e`. Everything below `r` that an observed doorbell
//! published is then below `e`, even if that doorbell's event was lost. So `e..r` is unseen. The note may be lost, if more queues are
//! in use than there are places for. For this reason the model also uses the events.
//!
//! A sample of the collector has no note, and its read index may result from a doorbell whose event has not arrived yet. So the
//! model uses such a sample only at the queue's end, when all events have arrived, and only if none was lost.
//!
//! The index that a doorbell itself names is never unseen, even if the GPU took it before: a GPU that maps a queue again reads the
//! write index by itself, and may be faster than the store.

use std::collections::VecDeque;

use super::Queue;
use crate::event::Before;
use crate::tables::Path;

/// The unseen indexes of one queue.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Ranges for which rows may still be created, lowest first.
    pub(super) ranges: VecDeque<(u64, u64)>,
    /// One past the highest index found.
    pub(super) end: u64,
    /// Number of indexes in the rows created.
    pub(super) rows: u64,
    /// Lower indexes may have been published before tracer watched the queue, and higher ones were not; `None` while the floor is
    /// unknown.
    pub(super) floor: Option<u64>,
    /// Lower indexes may have been published by doorbells of which only the value is known.
    pub(super) blind_end: u64,
    /// Whether the GPU took an index for which a doorbell may have been lost.
    pub(super) doubted: bool,
}

impl Unseen {
    /// Adds `from..to`, which the GPU took although no doorbell published it.
    pub(super) fn add(&mut self, from: u64, to: u64) {
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
        if let Some(before) = before {
            let from = before.rung_end.max(self.credited.unwrap_or(0));
            self.unseen.add(from, before.read_index.min(before.value));
        }
    }
}
