//! Parts: the Parquet files of a table, and which of them count.
//!
//! `part-000007.89abcdef.parquet` is the seventh thing written to its table. A part that replaces others says so by its
//! name: `part-000001-000007.89abcdef.parquet` stands for all numbers from 1 to 7, and parts within that range no longer
//! count. So replacing many parts by one is a single rename, and a recorder killed between it and the removal of the old
//! ones leaves no row twice.
//!
//! The eight digits are the file's CRC-32. Bits that flipped on a disk or on the way would else be other rows, or more
//! memory than there is: a decoder believes what a page says of its size.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use polars::prelude::*;

use crate::columns::Columns;
use crate::error::{Damage, IoContext, StoreError};
use crate::file;
use crate::schema::{self, Table};

/// Rows that are read, and at most kept, at a time: the size of a row group.
pub(crate) const WINDOW: usize = 1 << 16;

/// Key in the Parquet metadata: time of the earliest row.
const FIRST_TIME: &str = "tracer.first_time_ns";

/// The numbers that a part stands for.
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
        let numbers = if first == last {
            format!("{first:06}")
        } else {
            format!("{first:06}-{last:06}")
        };
        let checksum = checksum.map_or_else(String::new, |sum| format!(".{sum:08x}"));
        format!("part-{numbers}{checksum}.parquet")
    }

    /// `None` for what is no part's name.
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

    const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// Parts in a table's folder that count, in the order of their numbers, and those that others replaced. A folder that
/// is not there has none.
pub(crate) fn list(folder: &Path) -> Result<Listing, StoreError> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
        entries => entries.context("read", folder)?,
    };
    for entry in entries {
        let entry = entry.context("read", folder)?;
        names.extend(entry.file_name().to_str().and_then(PartName::parse));
    }
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

/// What [`list`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub parts: Vec<PartName>,
    pub replaced: Vec<PartName>,
}

/// Removes the parts that others replaced.
pub(crate) fn remove_replaced(folder: &Path) -> Result<(), StoreError> {
    list(folder)?
        .replaced
        .into_iter()
        .try_for_each(|name| file::remove(&folder.join(name.file_name())))
}

/// Writes rows as a part, in the order of time. Returns its size in bytes.
pub(crate) fn write(folder: &Path, name: PartName, columns: &Columns) -> Result<u64, StoreError> {
    let failed = |error: PolarsError| StoreError::Table {
        action: "write",
        path: folder.join(name.file_name()),
        reason: error.to_string(),
    };
    let mut frame = columns.to_frame().map_err(failed)?;
    let first_time = columns.first_time().unwrap_or_default().to_string();
    let named = |checksum| {
        PartName {
            checksum: Some(checksum),
            ..name
        }
        .file_name()
    };
    file::write_summed(folder, &name.file_name(), named, |file| {
        ParquetWriter::new(file)
            .with_compression(ParquetCompression::Zstd(None))
            .with_row_group_size(Some(WINDOW))
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(vec![(FIRST_TIME.to_owned(), first_time)])))
            // A recorder leaves the processors to what it records.
            .set_parallel(false)
            .finish(&mut frame)
            .map_err(failed)
            .map(drop)
    })
}

/// A part that can be opened and has the columns of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub table: Table,
    pub path: PathBuf,
    pub rows: usize,
    /// Time of the earliest row; 0 if unknown.
    pub first_time: u64,
}

impl Part {
    /// Reads what a part says about itself, if it is what was written.
    pub(crate) fn open(table: Table, path: &Path) -> Result<Self, Damage> {
        guarded(path, || {
            check_sum(path)?;
            let mut reader = ParquetReader::new(open(path)?);
            check_columns(table, &*reader.schema().map_err(|error| not_parquet(&error))?)?;
            let metadata = reader.get_metadata().map_err(|error| not_parquet(&error))?;
            let pairs = metadata.key_value_metadata().iter().flatten();
            let first_time = pairs
                .filter(|pair| pair.key == FIRST_TIME)
                .find_map(|pair| pair.value.as_deref()?.parse().ok());
            let first_time = first_time.unwrap_or_default();
            Ok(Self {
                table,
                path: path.to_owned(),
                rows: metadata.num_rows,
                first_time,
            })
        })
    }

    /// Reads at most [`WINDOW`] rows from the `offset`th on.
    pub(crate) fn read(&self, offset: usize) -> Result<Columns, Damage> {
        guarded(&self.path, || {
            let mut reader = ParquetReader::new(open(&self.path)?);
            let names = self.table.columns().iter().map(|column| column.name.to_owned());
            let schema = reader.schema().map_err(|error| not_parquet(&error))?;
            let frame = reader
                .with_slice(Some((offset, WINDOW)))
                .with_columns(Some(names.filter(|name| schema.contains(name)).collect()))
                .read_parallel(ParallelStrategy::None)
                .finish()
                .map_err(|error| error.to_string())?;
            Columns::from_frame(self.table, &frame)
        })
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "it is gone, because its recording ended meanwhile; try again".to_owned(),
        _ => error.to_string(),
    })
}

/// Whether a part has the checksum of its name, if that has one.
fn check_sum(path: &Path) -> Result<(), String> {
    let name = path.file_name().and_then(|name| PartName::parse(name.to_str()?));
    let Some(expected) = name.and_then(|name| name.checksum) else {
        return Ok(());
    };
    let found = file::checksum(open(path)?).map_err(|error| error.to_string())?;
    if found == expected {
        Ok(())
    } else {
        Err(format!(
            "it is not what was written: its CRC-32 is {found:08x}, not {expected:08x}"
        ))
    }
}

fn not_parquet(error: &PolarsError) -> String {
    format!("it is no whole Parquet file ({error})")
}

/// Whether the table can be made of the columns.
fn check_columns(table: Table, found: &ArrowSchema) -> Result<(), String> {
    for column in table.columns() {
        let expected = schema::polars_type(column.kind);
        match found.get(column.name).map(DataType::from_arrow_field) {
            Some(kind) if kind == expected => {}
            Some(kind) => return Err(format!("column `{}` is {kind}, not {expected}", column.name)),
            None if column.nullable => {}
            None => {
                return Err(format!(
                    "it has no column `{}`, which table `{}` needs",
                    column.name,
                    table.name()
                ));
            }
        }
    }
    Ok(())
}

/// Runs a reader over a file that may hold anything: some damage makes the decoder panic instead of failing.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<T, Damage> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    outcome
        .unwrap_or_else(|_| Err("its content cannot be decoded".to_owned()))
        .map_err(|reason| Damage::new(path, reason))
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
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::write(folder.path().join(".part-000004.parquet.tmp"), "").unwrap();
        let listing = list(folder.path()).unwrap();
        assert_eq!(listing.parts, [PartName::range(1, 2), PartName::single(3)]);
        assert_eq!(listing.replaced, [PartName::single(1), PartName::single(2)]);
    }
}
