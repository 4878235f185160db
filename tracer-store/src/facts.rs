//! Rows of parts that overlap in time, merged into one order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::iter::FusedIterator;
use std::mem;

use tracer_core::tables::Fact;

use crate::columns::Columns;
use crate::error::{Damage, StoreError};
use crate::part::{Loaded, Part, Parts, WINDOW};

/// Rows of tables in the order of time.
///
/// A damaged part is an error, and ends the rows. After [`Self::skip_damaged`] its rows are left out, and [`Self::damaged`] reports
/// it.
#[derive(Debug)]
pub struct Facts {
    /// Parts not begun yet, the earliest last.
    ahead: Vec<(usize, Part)>,
    begun: BinaryHeap<Cursor>,
    damaged: Vec<Damage>,
    skip_damaged: bool,
    failed: bool,
}

impl Facts {
    pub(crate) fn new(parts: Parts) -> Self {
        let mut ahead: Vec<_> = parts.readable.into_iter().enumerate().collect();
        ahead.sort_by_key(|(rank, part)| Reverse((part.first_time, *rank)));
        Self {
            ahead,
            begun: BinaryHeap::new(),
            damaged: parts.damaged,
            skip_damaged: false,
            failed: false,
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

    /// Begins every part that can contain the next row.
    fn begin(&mut self) {
        while let Some((_, part)) = self.ahead.last()
            && self.begun.peek().is_none_or(|cursor| part.first_time <= cursor.time)
        {
            let Some((rank, part)) = self.ahead.pop() else { return };
            match Cursor::new(rank, &part) {
                Ok(cursor) => self.begun.extend(cursor),
                Err(damage) => self.damaged.push(damage),
            }
        }
    }

    /// Returns the next row of the parts begun; `None` if there is none, or the next one cannot be read.
    fn take(&mut self) -> Option<Fact> {
        let mut cursor = self.begun.peek_mut()?;
        let taken = cursor.take();
        let more = match &taken {
            Ok(_) => cursor.advance(),
            Err(_) => Ok(false),
        };
        if !matches!(more, Ok(true)) {
            PeekMut::pop(cursor);
        }
        self.damaged.extend(more.err());
        taken.map_err(|damage| self.damaged.push(damage)).ok()
    }
}

impl Iterator for Facts {
    type Item = Result<Fact, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.skip_damaged || self.damaged.is_empty() {
            self.begin();
            let at_end = self.begun.is_empty() && self.ahead.is_empty();
            match self.take() {
                Some(fact) => return Some(Ok(fact)),
                None if at_end && (self.skip_damaged || self.damaged.is_empty()) => return None,
                None => {}
            }
        }
        let reported = mem::replace(&mut self.failed, true);
        self.damaged
            .first()
            .filter(|_| !reported)
            .map(|damage| Err(StoreError::Damaged(damage.clone())))
    }
}

impl FusedIterator for Facts {}

/// A position in a part.
#[derive(Debug)]
struct Cursor {
    /// Position of the part among all parts. It decides between rows of the same time.
    rank: usize,
    loaded: Loaded,
    /// Rows in memory.
    window: Columns,
    /// Position of the window in the part.
    begin: usize,
    /// Position of the next row in the window.
    row: usize,
    /// Time of the next row.
    time: u64,
}

impl Cursor {
    /// Returns a cursor at the first row of a part; `None` if the part has no rows.
    fn new(rank: usize, part: &Part) -> Result<Option<Self>, Damage> {
        let loaded = part.load()?;
        let window = loaded.read(0)?;
        let Some(time) = window.time(0) else { return Ok(None) };
        Ok(Some(Self {
            rank,
            loaded,
            window,
            begin: 0,
            row: 0,
            time,
        }))
    }

    fn take(&self) -> Result<Fact, Damage> {
        self.window.get(self.row).map_err(|misfit| {
            let part = &self.loaded.part;
            let column = part.table.columns().get(misfit.column).map_or("", |column| column.name);
            let row = self.begin + self.row;
            Damage::new(
                &part.path(),
                format!("column `{column}` has an unknown value in row {row}"),
            )
        })
    }

    /// Advances to the next row. Returns whether there is one.
    fn advance(&mut self) -> Result<bool, Damage> {
        self.row += 1;
        if self.row == WINDOW && self.begin + WINDOW < self.loaded.part.rows {
            self.begin += WINDOW;
            self.row = 0;
            self.window = self.loaded.read(self.begin)?;
        }
        let time = self.window.time(self.row);
        self.time = time.unwrap_or(self.time);
        Ok(time.is_some())
    }

    const fn order(&self) -> (u64, usize) {
        (self.time, self.rank)
    }
}

impl Ord for Cursor {
    /// Orders the earliest as the greatest, which a heap returns first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Cursor {}
