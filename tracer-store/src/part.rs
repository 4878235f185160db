//! Parts: the Parquet files of a table, and which of them count.
//!
//! `part-000007.89abcdef.parquet` is the seventh part written to its table. The name of a part that replaces others contains their
//! range: `part-000001-000007.89abcdef.parquet` represents all numbers from 1 to 7, and parts within that range no longer count. So
//! one rename replaces many parts by one. A recorder killed between that rename and the removal of the old parts leaves no row
//! twice.
//!
//! The eight digits are the file's CRC-32. Without it, bits that flipped on a disk or on the way would become other rows, or would
//! request more memory than exists, because a decoder believes the size that a page states.

use std::cell::Cell;
use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, Cursor};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;

use polars::prelude::*;
use tracer_core::tables::Table;
use tracer_files::Folder;

use crate::columns::{Columns, encode, polars_type};
use crate::error::{Damage, StoreError};
use crate::file;

/// The maximum number of rows read, and kept, at a time: the size of a row group.
pub(crate) const WINDOW: usize = 1 << 16;

/// The maximum size of a part to read, in bytes: several times what a recorder writes at once.
const MAX_BYTES: u64 = 1 << 30;

/// Key in the Parquet metadata: time of the earliest row.
const FIRST_TIME: &str = "tracer.first_time_ns";

/// The numbers that a part represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartName {
    pub first: u32,
    pub last: u32,
    /// CRC-32 (ISO-HDLC) of the file; `None` before it is written, and in traces of version 1.
    pub checksum: Option<u32>,
}

impl PartName {
    pub(crate) const fn single(number: u32) -> Self {
        Self::range(number, number)
    }

    pub(crate) const fn range(first: u32, last: u32) -> Self {
        Self {
            first,
            last,
            checksum: None,
        }
    }

    pub(crate) fn file_name(self) -> String {
        let Self { first, last, checksum } = self;
        let last = if first == last {
            String::new()
        } else {
            format!("-{last:06}")
        };
        let checksum = checksum.map(|sum| format!(".{sum:08x}")).unwrap_or_default();
        format!("part-{first:06}{last}{checksum}.parquet")
    }

    /// Parses a part's name; `None` if it is not one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
        let (numbers, checksum) = match name.split_once('.') {
            Some((numbers, sum)) if sum.len() == 8 => (numbers, Some(u32::from_str_radix(sum, 16).ok()?)),
            Some(_) => return None,
            None => (name, None),
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let name = Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            checksum,
        };
        (name.first <= name.last).then_some(name)
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// The parts in a table's folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The parts that count, in the order of their numbers.
    pub parts: Vec<PartName>,
    pub replaced: Vec<PartName>,
}

/// Returns the parts in a table's folder.
pub(crate) fn list(folder: &Folder) -> Result<Listing, StoreError> {
    let entries = file::entries(folder)?;
    let names = entries.iter().filter_map(|entry| PartName::parse(entry.name.to_str()?));
    let mut names: Vec<_> = names.collect();
    // A part that contains others comes before them.
    names.sort_by_key(|name| (name.first, Reverse(name.last)));
    let mut listing = Listing::default();
    for name in names {
        match listing.parts.last() {
            Some(last) if last.contains(name) => listing.replaced.push(name),
            _ => listing.parts.push(name),
        }
    }
    Ok(listing)
}

/// Removes replaced parts.
pub(crate) fn remove_replaced(folder: &Folder) -> Result<(), StoreError> {
    let mut replaced = list(folder)?.replaced.into_iter();
    replaced.try_for_each(|name| file::remove(folder, name.file_name().as_ref()))
}

/// Writes rows as a part, in the order of time, into which it brings them.
pub(crate) fn write(folder: &Folder, name: PartName, columns: &mut Columns) -> Result<(), StoreError> {
    let failed = |error: PolarsError| StoreError::Table {
        action: "write",
        path: folder.path().join(name.file_name()),
        reason: error.to_string(),
    };
    columns.sort();
    let first_time = columns.time(0).unwrap_or_default().to_string();
    let named = |sum| {
        let checksum = Some(sum);
        PartName { checksum, ..name }.file_name()
    };
    file::write(folder, &name.file_name(), named, |file| {
        encode::write(file, columns, WINDOW, (FIRST_TIME, first_time)).map_err(failed)
    })
}

/// A part that can be opened and has the columns of its table.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub table: Table,
    folder: Folder,
    name: PartName,
    pub rows: usize,
    /// Time of the earliest row; 0 if unknown.
    pub first_time: u64,
}

impl Part {
    /// Reads a part's metadata, if the file is as it was written.
    pub(crate) fn open(table: Table, folder: &Folder, name: PartName) -> Result<Self, Damage> {
        guarded(table, &folder.path().join(name.file_name()), || {
            let mut reader = ParquetReader::new(Cursor::new(content(folder, name)?));
            check_columns(table, &*reader.schema().map_err(|error| not_parquet(&error))?)?;
            let metadata = reader.get_metadata().map_err(|error| not_parquet(&error))?;
            let in_groups: usize = metadata.row_groups.iter().map(|group| group.num_rows()).sum();
            if metadata.num_rows != in_groups {
                let rows = metadata.num_rows;
                return Err(format!(
                    "its footer names {rows} rows, and its row groups have {in_groups}"
                ));
            }
            let pairs = metadata.key_value_metadata().iter().flatten();
            let mut times = pairs.filter(|pair| pair.key == FIRST_TIME);
            let first_time = times.find_map(|pair| pair.value.as_deref()?.parse().ok());
            Ok(Self {
                table,
                folder: folder.clone(),
                name,
                rows: metadata.num_rows,
                first_time: first_time.unwrap_or_default(),
            })
        })
    }

    /// Returns the path, for people.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(self.name.file_name())
    }

    /// Returns the content of the file, if it is still as it was written. A mapping would fault if another process truncated the
    /// file.
    pub(crate) fn load(&self) -> Result<Vec<u8>, Damage> {
        guarded(self.table, &self.path(), || content(&self.folder, self.name))
    }

    /// Opens the file, for an engine that reads it by itself.
    pub(crate) fn file(&self) -> Result<File, Damage> {
        let opened = self.folder.open_file(self.name.file_name().as_ref(), MAX_BYTES);
        opened.map_err(|error| Damage::new(self.table, &self.path(), error.to_string()))
    }

    /// Reads at most [`WINDOW`] rows from the `offset`th on, in place of what `rows` had. `content` is what [`Self::load`] returned:
    /// the decoder reads the bytes that the checksum covers, whatever happens to the file in between.
    pub(crate) fn read(&self, content: &[u8], offset: usize, rows: &mut Columns) -> Result<(), Damage> {
        guarded(self.table, &self.path(), move || {
            let mut reader = ParquetReader::new(Cursor::new(content));
            let names = self.table.columns().iter().map(|column| column.name.to_owned());
            let schema = reader.schema().map_err(|error| not_parquet(&error))?;
            let frame = reader
                .with_slice(Some((offset, WINDOW)))
                .with_columns(Some(names.filter(|name| schema.contains(name)).collect()))
                .read_parallel(ParallelStrategy::None)
                .finish()
                .map_err(|error| error.to_string())?;
            rows.read(&frame)
        })
    }
}

/// Reads the content of a part, and checks it against the checksum in its name, if the name has one.
fn content(folder: &Folder, name: PartName) -> Result<Vec<u8>, String> {
    let bytes = folder.read_file(name.file_name().as_ref(), MAX_BYTES);
    let bytes = bytes.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "it no longer exists, because its recording ended in between; try again".to_owned(),
        _ => error.to_string(),
    })?;
    let found = crc32fast::hash(&bytes);
    match name.checksum {
        Some(expected) if expected != found => Err(format!(
            "its contents changed: its CRC-32 is {found:08x}, not {expected:08x}"
        )),
        _ => Ok(bytes),
    }
}

fn not_parquet(error: &PolarsError) -> String {
    format!("it is not a whole Parquet file ({error})")
}

/// Checks that the columns can form the table.
fn check_columns(table: Table, found: &ArrowSchema) -> Result<(), String> {
    for column in table.columns() {
        let (name, expected) = (column.name, polars_type(column.kind));
        match found.get(name).map(DataType::from_arrow_field) {
            Some(kind) if kind == expected => {}
            Some(kind) => return Err(format!("column `{name}` is {kind}, not {expected}")),
            None if column.nullable => {}
            None => {
                let table = table.name();
                return Err(format!("it has no column `{name}`, which table `{table}` needs"));
            }
        }
    }
    Ok(())
}

thread_local! {
    /// Whether this thread decodes a file. A panic is then damage, and must not be printed.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Hides panics of the decoder from the panic hook, which would print them.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                before(info);
            }
        }));
    });
}

/// Runs a reader over a file that may contain anything. Some damage makes the decoder panic instead of failing.
fn guarded<T>(table: Table, path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<T, Damage> {
    quieten();
    DECODING.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    DECODING.set(false);
    outcome
        .unwrap_or_else(|_| Err("its content cannot be decoded".to_owned()))
        .map_err(|reason| Damage::new(table, path, reason))
}

/// Parts of a table, and its damage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub readable: Vec<Part>,
    pub damaged: Vec<Damage>,
}

impl Parts {
    /// Counts the rows of the readable parts.
    pub(crate) fn rows(&self) -> u64 {
        self.readable.iter().map(|part| part.rows as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_made() {
        for name in [
            PartName::single(1),
            PartName::range(1, 57),
            PartName::single(1_234_567),
            PartName {
                checksum: Some(0xa0b),
                ..PartName::range(3, 9)
            },
        ] {
            assert_eq!(PartName::parse(&name.file_name()), Some(name));
        }
        for name in [
            "part-1.parquet.tmp",
            ".part-000001.parquet.tmp",
            "part-.parquet",
            "part-2-1.parquet",
            "x.parquet",
            "part-000001.12345678x.parquet",
            "part-000001.1234567.parquet",
            "part-000001..parquet",
        ] {
            assert_eq!(PartName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_part_counts_unless_another_contains_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "part-000001.parquet",
            "part-000002.parquet",
            "part-000001-000002.parquet",
            "part-000003.parquet",
            ".part-000004.parquet.tmp",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let listing = list(&Folder::open(folder.path()).unwrap()).unwrap();
        assert_eq!(listing.parts, [PartName::range(1, 2), PartName::single(3)]);
        assert_eq!(listing.replaced, [PartName::single(1), PartName::single(2)]);
    }
}
