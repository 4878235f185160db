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

/// Small parts at the end of a table, while it is recorded. [`FAN`] parts of a tier become one of the next, so that after n parts
/// there are about log n, and each row is written again as often.
#[derive(Debug, Default)]
pub(crate) struct Tiers(Vec<Small>);

/// A small part.
#[derive(Clone, Copy, Debug)]
struct Small {
    name: PartName,
    tier: u32,
}

impl Tiers {
    /// Notes a written part, and merges a tier that has enough parts.
    pub(crate) fn add(&mut self, folder: &Folder, table: Table, number: u32, rows: usize) -> Result<(), StoreError> {
        if rows >= WINDOW {
            // Parts are merged only with their neighbours.
            self.0.clear();
            return Ok(());
        }
        let name = PartName::single(number);
        self.0.push(Small { name, tier: 0 });
        while let Some(&Small { tier, .. }) = self.0.last() {
            let same = self.0.iter().rev().take_while(|small| small.tier == tier).count();
            if same < FAN {
                break;
            }
            let run = self.0.split_off(self.0.len() - same);
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                break;
            };
            // Parts that were replaced the last time stay until now, because a reader may have been about to open them.
            part::remove_replaced(folder)?;
            let within = PartName::range(first.name.first, last.name.last);
            let mut names = part::list(folder)?.parts;
            names.retain(|name| within.contains(*name));
            let rows = merge(folder, table, &names)?;
            if rows >= WINDOW {
                // The part is large enough.
                self.0.clear();
                break;
            }
            self.0.push(Small {
                name: within,
                tier: tier + 1,
            });
        }
        Ok(())
    }
}

/// Merges runs of small parts among `names`. Returns the rows of the last run.
fn merge(folder: &Folder, table: Table, names: &[PartName]) -> Result<usize, StoreError> {
    let mut run = Run {
        folder,
        table,
        first: None,
        last: 0,
        parts: 0,
        rows: Columns::new(table),
    };
    for &name in names {
        // A part that cannot be read stays, so that the reader can report it.
        let small = Part::open(table, folder, name).ok().filter(|part| part.rows < WINDOW);
        match small.and_then(|part| part.load().ok()?.read(0).ok()) {
            Some(rows) => run.add(name, &rows)?,
            None => run.write()?,
        }
    }
    let rows = run.rows.rows();
    run.write()?;
    Ok(rows)
}

/// Adjacent parts that become one.
struct Run<'a> {
    folder: &'a Folder,
    table: Table,
    /// Name of the first part.
    first: Option<PartName>,
    /// Last number of the last part.
    last: u32,
    parts: usize,
    rows: Columns,
}

impl Run<'_> {
    fn add(&mut self, name: PartName, rows: &Columns) -> Result<(), StoreError> {
        self.first.get_or_insert(name);
        self.last = name.last;
        self.parts += 1;
        self.rows.append(rows);
        if self.rows.rows() < MERGED_ROWS {
            Ok(())
        } else {
            self.write()
        }
    }

    /// Writes the added parts, and begins again.
    fn write(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::replace(&mut self.rows, Columns::new(self.table));
        let parts = std::mem::take(&mut self.parts);
        match self.first.take() {
            // A single part stays unchanged.
            Some(first) if parts > 1 => {
                let name = PartName::range(first.first, self.last);
                part::write(self.folder, name, &rows).map(drop)
            }
            _ => Ok(()),
        }
    }
}
