//! Merges many small parts into few: a recorder writes a part every half second, however few rows there are.

use tracer_core::tables::Table;
use tracer_files::Folder;

use crate::columns::Columns;
use crate::error::StoreError;
use crate::part::{self, Part, PartName, WINDOW};

/// The approximate number of rows of a part that is merged from small ones.
const MERGED_ROWS: usize = 4 * WINDOW;

/// The number of parts of one tier that become one part of the next.
const FAN: usize = 16;

/// Merges runs of parts of a table with less than [`WINDOW`] rows each. The work is bounded by the parts of half seconds with
/// little traffic: full batches stay unchanged.
pub(crate) fn compact(folder: &Folder, table: Table) -> Result<(), StoreError> {
    merge(folder, table, &part::list(folder)?.parts)?;
    part::remove_replaced(folder)
}

/// Small parts at the end of a table, each with its tier, while it is recorded. [`FAN`] parts of a tier become one of the next, so
/// that after n parts there are about log n, and each row is written again as often.
#[derive(Debug, Default)]
pub(crate) struct Tiers(Vec<(PartName, u32)>);

impl Tiers {
    /// Notes a written part, and merges a tier that has enough parts.
    pub(crate) fn add(&mut self, folder: &Folder, table: Table, number: u32, rows: usize) -> Result<(), StoreError> {
        if rows >= WINDOW {
            // Parts are merged only with their neighbours.
            self.0.clear();
            return Ok(());
        }
        self.0.push((PartName::single(number), 0));
        while let Some(&(last, tier)) = self.0.last() {
            let same = self.0.iter().rev().take_while(|small| small.1 == tier).count();
            if same < FAN {
                break;
            }
            let first = self.0.len() - same;
            let within = PartName::range(self.0[first].0.first, last.last);
            self.0.truncate(first);
            // Parts that were replaced the last time stay until now, because a reader may have been about to open them.
            part::remove_replaced(folder)?;
            let mut names = part::list(folder)?.parts;
            names.retain(|name| within.contains(*name));
            if merge(folder, table, &names)? >= WINDOW {
                // The part is large enough.
                self.0.clear();
                break;
            }
            self.0.push((within, tier + 1));
        }
        Ok(())
    }
}

/// Merges runs of small parts among `names`. Returns the rows of the last run.
fn merge(folder: &Folder, table: Table, names: &[PartName]) -> Result<usize, StoreError> {
    let (mut run, mut rows) = (Vec::new(), Columns::new(table));
    for &name in names {
        let more = read_small(folder, table, name);
        if let Some(more) = &more {
            run.push(name);
            rows.append(more);
        }
        if more.is_none() || rows.rows() >= MERGED_ROWS {
            write(folder, &run, &mut rows)?;
            run.clear();
            rows.clear();
        }
    }
    write(folder, &run, &mut rows)?;
    Ok(rows.rows())
}

/// Returns the rows of a small part. A part that cannot be read stays, so that the reader can report it.
fn read_small(folder: &Folder, table: Table, name: PartName) -> Option<Columns> {
    let part = Part::open(table, folder, name).ok()?;
    if part.rows >= WINDOW {
        return None;
    }
    let mut rows = Columns::new(table);
    part.read(&part.load().ok()?, 0, &mut rows).ok()?;
    Some(rows)
}

/// Writes the rows of adjacent parts as one part. A single part stays unchanged.
fn write(folder: &Folder, run: &[PartName], rows: &mut Columns) -> Result<(), StoreError> {
    match run {
        [first, .., last] => part::write(folder, PartName::range(first.first, last.last), rows),
        _ => Ok(()),
    }
}
