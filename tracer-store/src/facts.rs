//! Rows of parts that overlap in time, merged into one order.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::iter::FusedIterator;
use std::mem;

use tracer_core::tables::Fact;

use crate::cursor::{Cursor, Spare};
use crate::error::{Damage, StoreError};
use crate::part::{Part, Parts};

/// Parts whose first rows are decoded before they are needed: each takes as much memory as a part that is read.
const COMING: usize = 2;
/// Parts that overlap up to which each is decoded on a thread of its own: a recording has a few for each table.
const MAX_AHEAD: usize = 64;

/// Rows of tables in the order of time.
///
/// A damaged part is an error, and ends the rows. After [`Self::skip_damaged`] its rows are left out, and [`Self::damaged`] reports
/// it.
#[derive(Debug)]
pub struct Facts {
    /// Parts not begun yet, the earliest last.
    ahead: Vec<(usize, Part)>,
    /// The next ones after these, with their first rows, the earliest first.
    coming: VecDeque<(usize, Cursor)>,
    /// Time of the next row of each part that is read, the position of the part among all parts, which decides between rows of the
    /// same time, and its place in `cursors`.
    order: BinaryHeap<Reverse<(u64, usize, usize)>>,
    /// The parts that are read; `None` in places that are free.
    cursors: Vec<Option<Cursor>>,
    spare: Spare,
    damaged: Vec<Damage>,
    skip_damaged: bool,
    failed: bool,
    /// Whether [`Self::next_row`] has returned the next row.
    is_lent: bool,
}

impl Facts {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut ahead: Vec<_> = parts.readable.into_iter().enumerate().collect();
        ahead.sort_by_key(|(rank, part)| Reverse((part.first_time, *rank)));
        Self {
            ahead,
            coming: VecDeque::new(),
            order: BinaryHeap::new(),
            cursors: Vec::new(),
            spare: Spare::default(),
            damaged: parts.damaged,
            skip_damaged: false,
            failed: false,
            is_lent: false,
        }
    }

    /// Leaves out the rows of damaged parts.
    #[must_use]
    pub fn skip_damaged(mut self) -> Self {
        self.skip_damaged = true;
        self
    }

    /// Returns the damaged parts found so far; all of them after the last row.
    #[must_use]
    pub fn damaged(&self) -> &[Damage] {
        &self.damaged
    }

    /// Returns the next row as [`Iterator::next`] does, but keeps it: rows are large, and many readers only look at them.
    #[must_use]
    pub fn next_row(&mut self) -> Option<Result<&Fact, StoreError>> {
        match self.settle() {
            Some(place) => {
                self.is_lent = true;
                self.cursors.get(place)?.as_ref()?.row().map(Ok)
            }
            None => self.failure().map(Err),
        }
    }

    /// Finds the cursor with the next row. `None` after the last row, or if a damaged part ends the rows.
    fn settle(&mut self) -> Option<usize> {
        if mem::take(&mut self.is_lent) {
            self.pass(Cursor::skip);
        }
        if !self.skip_damaged && !self.damaged.is_empty() {
            return None;
        }
        self.begin();
        let is_readable = self.skip_damaged || self.damaged.is_empty();
        let next = self.order.peek().filter(|_| is_readable);
        next.map(|Reverse((_, _, place))| *place)
    }

    /// Returns the error that ends the rows, once.
    fn failure(&mut self) -> Option<StoreError> {
        if self.skip_damaged || mem::replace(&mut self.failed, true) {
            return None;
        }
        self.damaged.first().cloned().map(StoreError::Damaged)
    }

    /// Begins every part that can contain the next row.
    fn begin(&mut self) {
        loop {
            while self.coming.len() < COMING
                && let Some((rank, part)) = self.ahead.pop()
            {
                let ahead = self.order.len() < MAX_AHEAD;
                self.coming.push_back((rank, Cursor::begin(part, &self.spare, ahead)));
            }
            let next = self.order.peek().map_or(u64::MAX, |Reverse((time, ..))| *time);
            let is_due = |(_, cursor): &mut (usize, Cursor)| cursor.part().first_time <= next;
            let Some((rank, cursor)) = self.coming.pop_front_if(is_due) else {
                return;
            };
            self.keep(rank, cursor);
        }
    }

    /// Keeps a cursor that has a next row.
    fn keep(&mut self, rank: usize, mut cursor: Cursor) {
        match cursor.time() {
            Ok(Some(time)) => {
                let free = self.cursors.iter().position(Option::is_none);
                let place = free.unwrap_or(self.cursors.len());
                match self.cursors.get_mut(place) {
                    Some(free) => *free = Some(cursor),
                    None => self.cursors.push(Some(cursor)),
                }
                self.order.push(Reverse((time, rank, place)));
            }
            Ok(None) => {}
            Err(damage) => self.damaged.push(damage),
        }
    }

    /// Moves past the next row of the parts begun by `pass`. Returns what that returns; `None` if there is no such row.
    fn pass<T>(&mut self, pass: impl FnOnce(&mut Cursor) -> T) -> Option<T> {
        let mut top = self.order.peek_mut()?;
        let Reverse((time, _, place)) = &mut *top;
        let slot = self.cursors.get_mut(*place)?;
        let cursor = slot.as_mut()?;
        let passed = pass(cursor);
        match cursor.time() {
            Ok(Some(next)) => *time = next,
            ended => {
                *slot = None;
                PeekMut::pop(top);
                self.damaged.extend(ended.err());
            }
        }
        Some(passed)
    }
}

impl Iterator for Facts {
    type Item = Result<Fact, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.settle() {
            Some(_) => self.pass(Cursor::take)?.map(Ok),
            None => self.failure().map(Err),
        }
    }
}

impl FusedIterator for Facts {}
