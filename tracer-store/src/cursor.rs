//! A position in a part, whose next rows another thread decodes.

use std::mem;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tracer_core::tables::{Fact, Table};

use crate::columns::Columns;
use crate::error::Damage;
use crate::part::Part;

/// The maximum number of rows that are handed over at once: few enough to be in a processor's cache when they are used.
const CHUNK: usize = 512;
/// Chunks that wait to be taken: with fewer, the thread that counts rows waits while the next rows of a part are decompressed.
const WAITING: usize = 12;
/// The maximum size of decoded rows whose memory is kept for the next part, in bytes.
const MAX_SPARE: usize = 64 << 20;

/// The memory of rows that were decoded, for the next parts of their tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Columns>>>);

impl Spare {
    fn take(&self, table: Table) -> Option<Columns> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_table = spare.iter().position(|columns| columns.table() == table);
        of_table.map(|at| spare.swap_remove(at))
    }

    fn give(&self, columns: Columns) {
        if columns.bytes() <= MAX_SPARE {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(columns);
        }
    }
}

/// A position in a part.
#[derive(Debug)]
pub(crate) struct Cursor {
    part: Part,
    supply: Supply,
    chunk: Chunk,
    /// Rows in `chunk`, and before.
    taken: usize,
}

/// Where chunks come from.
#[derive(Debug)]
enum Supply {
    /// From a thread, which ends once the receiver is dropped. It gets back the chunks whose rows are used, for their memory.
    Thread(Receiver<Result<Chunk, Damage>>, Sender<Chunk>),
    /// Many parts are read at once, or the system had no thread left.
    Own(Box<Decoder>),
}

/// The next rows and their times, the first one last.
type Chunk = Vec<(u64, Fact)>;

impl Cursor {
    /// Begins to decode a part, in the memory of parts before it. `ahead`: on a thread of its own.
    pub(crate) fn begin(part: Part, spare: &Spare, ahead: bool) -> Self {
        let decoder = || Decoder::new(part.clone(), spare.clone());
        let thread = ahead.then(|| decode_ahead(decoder())).flatten();
        Self {
            supply: thread.unwrap_or_else(|| Supply::Own(Box::new(decoder()))),
            part,
            chunk: Vec::new(),
            taken: 0,
        }
    }

    /// Returns the part.
    pub(crate) const fn part(&self) -> &Part {
        &self.part
    }

    /// Returns the time of the next row; `None` at the end of the part. Waits until that row is decoded.
    pub(crate) fn time(&mut self) -> Result<Option<u64>, Damage> {
        if self.chunk.is_empty() {
            self.refill()?;
        }
        Ok(self.chunk.last().map(|(time, _)| *time))
    }

    /// Returns the next row, once [`Self::time`] has announced it.
    pub(crate) fn row(&self) -> Option<&Fact> {
        self.chunk.last().map(|(_, fact)| fact)
    }

    /// Returns the next row, and moves on.
    pub(crate) fn take(&mut self) -> Option<Fact> {
        self.chunk.pop().map(|(_, fact)| fact)
    }

    /// Moves past the next row.
    pub(crate) fn skip(&mut self) {
        self.chunk.truncate(self.chunk.len().saturating_sub(1));
    }

    fn refill(&mut self) -> Result<(), Damage> {
        let used = mem::take(&mut self.chunk);
        let next = match &mut self.supply {
            Supply::Thread(receiver, back) => {
                // A thread that has ended needs no memory.
                let _ = back.send(used);
                receiver.recv().ok()
            }
            Supply::Own(decoder) => decoder.next(used),
        };
        match next {
            Some(chunk) => {
                let chunk = chunk?;
                self.taken += chunk.len();
                self.chunk = chunk;
                Ok(())
            }
            None if self.taken < self.part.rows => {
                let (taken, rows) = (self.taken, self.part.rows);
                let reason = format!("tracer failed to decode its rows from {taken} on, of {rows}");
                Err(Damage::new(self.part.table, &self.part.path(), reason))
            }
            None => Ok(()),
        }
    }
}

/// Starts a thread that decodes; `None` if the system has none left.
fn decode_ahead(mut decoder: Decoder) -> Option<Supply> {
    let (sender, receiver) = mpsc::sync_channel(WAITING);
    let (used, again) = mpsc::channel();
    let thread = thread::Builder::new().spawn(move || {
        while let Some(chunk) = decoder.next(again.try_recv().unwrap_or_default()) {
            if sender.send(chunk).is_err() {
                break;
            }
        }
    });
    thread.ok().map(|_| Supply::Thread(receiver, used))
}

/// Decodes the rows of a part in order.
#[derive(Debug)]
struct Decoder {
    part: Part,
    /// The content of the file, once it is loaded.
    content: Option<Vec<u8>>,
    /// Rows that are decoded into columns, the position of the first one in the part, and of the next one among them.
    window: Columns,
    begin: usize,
    row: usize,
    /// What is returned after the rows before it.
    damage: Option<Damage>,
    ended: bool,
    spare: Spare,
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let window = mem::replace(&mut self.window, Columns::new(self.part.table));
        self.spare.give(window);
    }
}

impl Decoder {
    fn new(part: Part, spare: Spare) -> Self {
        let mut window = spare.take(part.table).unwrap_or_else(|| Columns::new(part.table));
        window.clear();
        Self {
            window,
            part,
            content: None,
            begin: 0,
            row: 0,
            damage: None,
            ended: false,
            spare,
        }
    }

    /// Returns the next rows, at least one, in the memory of `chunk`, which is empty. Nothing follows damage.
    fn next(&mut self, chunk: Chunk) -> Option<Result<Chunk, Damage>> {
        let next = match self.damage.take() {
            _ if self.ended => return None,
            Some(damage) => Err(damage),
            None => self.fill(chunk),
        };
        self.ended = !matches!(&next, Ok(rows) if !rows.is_empty());
        (!self.ended || next.is_err()).then_some(next)
    }

    fn fill(&mut self, mut chunk: Chunk) -> Result<Chunk, Damage> {
        if self.row == self.window.rows() && !self.load()? {
            return Ok(chunk);
        }
        let rows = self.row..self.window.rows().min(self.row + CHUNK);
        chunk.reserve(rows.len());
        self.row = rows.end;
        for row in rows.rev() {
            // Rows are large: each step between the columns and the chunk would copy one again.
            let column = match self.window.get(row) {
                Ok(fact) => match self.window.time(row) {
                    Some(time) => {
                        chunk.push((time, fact));
                        continue;
                    }
                    None => usize::MAX,
                },
                Err(misfit) => misfit.column,
            };
            // Only the rows before it are returned.
            chunk.clear();
            self.damage = Some(self.unknown(row, column));
        }
        match self.damage.take_if(|_| chunk.is_empty()) {
            Some(damage) => Err(damage),
            None => Ok(chunk),
        }
    }

    /// Decodes the next window. Returns whether there is one.
    fn load(&mut self) -> Result<bool, Damage> {
        let begin = self.begin + self.window.rows();
        if begin >= self.part.rows {
            return Ok(false);
        }
        let content = match self.content.take() {
            Some(content) => content,
            None => self.part.load()?,
        };
        self.part.read(self.content.insert(content), begin, &mut self.window)?;
        (self.begin, self.row) = (begin, 0);
        Ok(self.window.rows() > 0)
    }

    fn unknown(&self, row: usize, column: usize) -> Damage {
        let table = self.part.table;
        let column = table.columns().get(column).map_or("", |column| column.name);
        let row = self.begin + row;
        let reason = format!("column `{column}` has an unknown value in row {row}");
        Damage::new(table, &self.part.path(), reason)
    }
}
