//! Rows of parts that overlap in time, merged into one order.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter::FusedIterator;
use std::mem;

use tracer_core::tables::Fact;

use crate::columns::Columns;
use crate::error::{Damage, StoreError};
use crate::part::{Part, Parts, WINDOW};

/// Rows of tables in the order of time.
///
/// A damaged part is an error, and ends the rows. After [`Self::skip_damaged`] its rows are left out, and [`Self::damaged`] reports
/// it.
#[derive(Debug)]
pub struct Facts {
    /// Parts not begun yet, the earliest last.
    ahead: Vec<(usize, Part)>,
    /// Parts that are read, by the time of their next row. The position of the part among all parts decides between rows of the
    /// same time.
    begun: BTreeMap<(u64, usize), Cursor>,
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
            begun: BTreeMap::new(),
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
        loop {
            let next = self.begun.first_key_value().map_or(u64::MAX, |((time, _), _)| *time);
            let Some((rank, part)) = self.ahead.pop_if(|(_, part)| part.first_time <= next) else {
                return;
            };
            self.keep(rank, Cursor::new(part));
        }
    }

    /// Keeps a cursor that has a next row.
    fn keep(&mut self, rank: usize, cursor: Result<Cursor, Damage>) {
        match cursor.map(|cursor| (cursor.time(), cursor)) {
            Ok((Some(time), cursor)) => drop(self.begun.insert((time, rank), cursor)),
            Ok((None, _)) => {}
            Err(damage) => self.damaged.push(damage),
        }
    }

    /// Returns the next row of the parts begun; `None` if there is none, or the next one cannot be read.
    fn take(&mut self) -> Option<Fact> {
        let ((_, rank), cursor) = self.begun.pop_first()?;
        let fact = cursor.get().map_err(|damage| self.damaged.push(damage)).ok()?;
        self.keep(rank, cursor.advance());
        Some(fact)
    }
}

impl Iterator for Facts {
    type Item = Result<Fact, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.skip_damaged || self.damaged.is_empty() {
            self.begin();
            match self.take() {
                Some(fact) => return Some(Ok(fact)),
                None if self.begun.is_empty() && self.ahead.is_empty() => break,
                None => {}
            }
        }
        if self.skip_damaged || mem::replace(&mut self.failed, true) {
            return None;
        }
        let damage = self.damaged.first()?;
        Some(Err(StoreError::Damaged(damage.clone())))
    }
}

impl FusedIterator for Facts {}

/// A position in a part.
#[derive(Debug)]
struct Cursor {
    part: Part,
    /// The content of the part's file.
    content: Vec<u8>,
    /// Rows in memory.
    window: Columns,
    /// Position of the window in the part.
    begin: usize,
    /// Position of the next row in the window.
    row: usize,
}

impl Cursor {
    /// Returns a cursor at the first row of a part.
    fn new(part: Part) -> Result<Self, Damage> {
        let content = part.load()?;
        Ok(Self {
            window: part.read(&content, 0)?,
            part,
            content,
            begin: 0,
            row: 0,
        })
    }

    /// Returns the time of the next row; `None` at the end of the part.
    fn time(&self) -> Option<u64> {
        self.window.time(self.row)
    }

    /// Returns the next row.
    fn get(&self) -> Result<Fact, Damage> {
        self.window.get(self.row).map_err(|misfit| {
            let column = self.part.table.columns().get(misfit.column);
            let column = column.map_or("", |column| column.name);
            let row = self.begin + self.row;
            let reason = format!("column `{column}` has an unknown value in row {row}");
            Damage::new(self.part.table, &self.part.path(), reason)
        })
    }

    fn advance(mut self) -> Result<Self, Damage> {
        self.row += 1;
        if self.row == WINDOW && self.begin + WINDOW < self.part.rows {
            self.begin += WINDOW;
            self.row = 0;
            self.window = self.part.read(&self.content, self.begin)?;
        }
        Ok(self)
    }
}
