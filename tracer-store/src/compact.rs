//! Many small parts into few: a recorder writes a part every half second, however few rows there are.

use std::path::Path;

use crate::columns::Columns;
use crate::error::StoreError;
use crate::part::{self, Part, PartName, WINDOW};
use crate::schema::Table;

/// Rows of a part that is made of small ones, about.
const MERGED_ROWS: usize = 4 * WINDOW;

/// Merges runs of parts of a table with less than [`WINDOW`] rows each. The work is bounded by what half seconds with
/// little traffic wrote: full batches stay as they are.
pub(crate) fn compact(folder: &Path, table: Table) -> Result<(), StoreError> {
    let mut run = Run {
        folder,
        table,
        first: None,
        last: 0,
        rows: Columns::new(table),
    };
    for name in part::list(folder)?.parts {
        // A part that cannot be read stays, for the reader to report.
        let small = Part::open(table, &folder.join(name.file_name()))
            .ok()
            .filter(|part| part.rows < WINDOW);
        match small.and_then(|part| part.read(0).ok()) {
            Some(rows) => run.add(name, &rows)?,
            None => run.write()?,
        }
    }
    run.write()?;
    part::remove_replaced(folder)
}

/// Adjacent parts that become one.
struct Run<'a> {
    folder: &'a Path,
    table: Table,
    /// Name of the first.
    first: Option<PartName>,
    /// Last number of the last.
    last: u32,
    rows: Columns,
}

impl Run<'_> {
    fn add(&mut self, name: PartName, rows: &Columns) -> Result<(), StoreError> {
        self.first.get_or_insert(name);
        self.last = name.last;
        self.rows.append(rows);
        if self.rows.rows() < MERGED_ROWS {
            Ok(())
        } else {
            self.write()
        }
    }

    /// Writes what was added, and begins anew.
    fn write(&mut self) -> Result<(), StoreError> {
        let rows = std::mem::replace(&mut self.rows, Columns::new(self.table));
        match self.first.take() {
            Some(first) if first.last < self.last => {
                let name = PartName::range(first.first, self.last);
                part::write(self.folder, name, &rows).map(drop)
            }
            _ => Ok(()),
        }
    }
}
