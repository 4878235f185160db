//! Columns as a Parquet file.
//!
//! Each column of a row group gets the encoding that suits its cells: a dictionary where few values repeat, differences for numbers
//! that are spread (times, indexes, addresses), and plain values otherwise. Texts arrive with their dictionary. The general writer of
//! polars hashes every cell to learn whether a dictionary pays, and has no differences.

use std::collections::HashMap;
use std::io::Write;

use foldhash::fast::RandomState;
use polars::prelude::{ArrowField, ArrowSchema, CompatLevel, PolarsError, PolarsResult};
use polars_arrow::array::{
    Array, BinaryViewArrayGeneric, BooleanArray, DictionaryArray, MutableBinaryViewArray, PrimitiveArray, View,
    ViewType, new_null_array,
};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::datatypes::{ArrowDataType, IntegerType};
use polars_arrow::types::NativeType;
use polars_parquet::read::ParquetError;
use polars_parquet::write::{
    CompressionOptions, Compressor, DynIter, DynStreamingIterator, Encoding, FallibleStreamingIterator, FileWriter,
    KeyValue, StatisticsOptions, Version, WriteOptions, array_to_columns, schema_to_metadata_key,
};
use tracer_core::tables::Kind;

use super::{Buffer, Columns, polars_type};

/// Maximum number of entries of a dictionary of numbers. Keys of more values take about as many bits as their differences.
const MAX_ENTRIES: usize = 256;

/// Cells of one column in a row group: from the row `begin` on.
#[derive(Clone, Copy)]
struct Cells<'a> {
    buffer: &'a Buffer,
    begin: usize,
    len: usize,
}

/// The key of each cell, and the values that the keys count.
type Dictionary = (Vec<u32>, Box<dyn Array>);

/// Writes columns as a file with row groups of at most `window` rows, and this pair in its metadata.
pub(crate) fn write(
    to: &mut dyn Write,
    columns: &Columns,
    window: usize,
    (key, value): (&str, String),
) -> PolarsResult<()> {
    let options = WriteOptions {
        statistics: StatisticsOptions::default(),
        version: Version::V1,
        compression: CompressionOptions::Zstd(None),
        data_page_size: None,
    };
    let kinds = columns.table.columns().iter().map(|column| column.kind);
    let field =
        |(name, kind): (&'static str, Kind)| (name.into(), ArrowField::new(name.into(), array_type(kind), true));
    let names = columns.table.columns().iter().map(|column| column.name);
    let schema: ArrowSchema = names.zip(kinds.clone()).map(field).collect();
    let mut file = FileWriter::try_new(to, schema, options)?;
    let types = file.parquet_schema().fields().to_vec();
    for begin in (0..columns.rows).step_by(window) {
        let len = window.min(columns.rows - begin);
        // The writer asks for one column after the other, so only one is in memory twice.
        let cells = columns.buffers.iter().zip(kinds.clone()).zip(&types);
        let compressed = cells.map(|((buffer, kind), r#type)| {
            let (array, encoding) = Cells { buffer, begin, len }.encode(kind)?;
            let leaves = array_to_columns(array, r#type.clone(), options, &[encoding])?;
            let pages = leaves.into_iter().flatten();
            let pages = pages.map(|page| page.map_err(|error| ParquetError::FeatureNotSupported(error.to_string())));
            let pages = Compressor::new_from_vec(pages, options.compression, Vec::new());
            Ok(DynStreamingIterator::new(pages.map_err(PolarsError::from)))
        });
        file.write(len as u64, DynIter::new(compressed))?;
    }
    let pairs = vec![
        schema_to_metadata_key(file.schema()),
        KeyValue {
            key: key.to_owned(),
            value: Some(value),
        },
    ];
    file.end(Some(pairs)).map(drop)
}

/// Returns all cells of a column as an array of its type.
pub(super) fn plain(buffer: &Buffer, kind: Kind) -> PolarsResult<Box<dyn Array>> {
    let len = buffer.len();
    Cells { buffer, begin: 0, len }.plain(kind)
}

impl Cells<'_> {
    /// Returns the cells as an array, and the encoding of its pages.
    fn encode(self, kind: Kind) -> PolarsResult<(Box<dyn Array>, Encoding)> {
        if self.buffer.validity() == Some(false) {
            return Ok((self.plain(kind)?, Encoding::Plain));
        }
        let dictionary = match kind {
            Kind::U32 => self.dictionary_of(|bits| bits as u32),
            Kind::U64 => self.dictionary_of(|bits| bits),
            Kind::I32 => self.dictionary_of(|bits| bits as i32),
            Kind::I64 => self.dictionary_of(u64::cast_signed),
            Kind::Bool => None,
            Kind::Text | Kind::Bytes => self.texts(kind),
        };
        if let Some((keys, entries)) = dictionary {
            let keys = PrimitiveArray::from_vec(keys).with_validity(self.validity());
            let dtype = ArrowDataType::Dictionary(IntegerType::UInt32, Box::new(entries.dtype().clone()), false);
            let array = DictionaryArray::try_new(dtype, keys, entries)?;
            return Ok((array.boxed(), Encoding::RleDictionary));
        }
        let encoding = if self.has_differences(kind) {
            Encoding::DeltaBinaryPacked
        } else {
            Encoding::Plain
        };
        Ok((self.plain(kind)?, encoding))
    }

    /// Returns whether the differences between cells are numbers of the column's type, so that no reader has to wrap around.
    fn has_differences(self, kind: Kind) -> bool {
        // Parquet has signed numbers only, and a difference of differences is up to four times as great as the numbers.
        let (signed, most): (fn(u64) -> i64, _) = match kind {
            Kind::U32 => (|bits| i64::from((bits as u32).cast_signed()), 1 << 30),
            Kind::I32 => (u64::cast_signed, 1 << 30),
            Kind::U64 | Kind::I64 => (u64::cast_signed, 1 << 62),
            Kind::Bool | Kind::Text | Kind::Bytes => return false,
        };
        let range = self.all().map(signed).fold(None, |range, number| match range {
            None => Some((number, number)),
            Some((least, greatest)) => Some((number.min(least), number.max(greatest))),
        });
        let width = range.and_then(|(least, greatest)| greatest.checked_sub(least));
        width.is_some_and(|width| width < most)
    }

    /// Returns the cells as an array of their type.
    fn plain(self, kind: Kind) -> PolarsResult<Box<dyn Array>> {
        if self.buffer.validity() == Some(false) {
            return Ok(new_null_array(array_type(kind), self.len));
        }
        Ok(match kind {
            Kind::U32 => self.numbers(|bits| bits as u32),
            Kind::U64 => self.numbers(|bits| bits),
            Kind::I32 => self.numbers(|bits| bits as i32),
            Kind::I64 => self.numbers(u64::cast_signed),
            Kind::Bool => {
                let values = self.all().map(|bits| bits != 0).collect();
                BooleanArray::new(ArrowDataType::Boolean, values, self.validity()).boxed()
            }
            Kind::Text => self.views(as_text)?,
            Kind::Bytes => self.views(|bytes| bytes)?,
        })
    }

    fn rows(self) -> impl ExactSizeIterator<Item = usize> {
        self.begin..self.begin + self.len
    }

    /// Returns the numbers of all cells; missing ones have any.
    fn all(self) -> impl ExactSizeIterator<Item = u64> {
        self.rows().map(move |row| self.buffer.number(row).unwrap_or_default())
    }

    fn validity(self) -> Option<Bitmap> {
        let valid = || self.rows().map(|row| !self.buffer.is_missing(row)).collect();
        self.buffer.validity().is_none().then(valid)
    }

    fn numbers<T: NativeType>(self, of: impl Fn(u64) -> T) -> Box<dyn Array> {
        let values = self.all().map(of).collect();
        PrimitiveArray::from_vec(values).with_validity(self.validity()).boxed()
    }

    /// Returns texts or bytes, each distinct one of them in memory once.
    fn views<T: ViewType + ?Sized>(self, of: impl Fn(&[u8]) -> &T) -> PolarsResult<Box<dyn Array>> {
        let texts = (0..self.buffer.texts() as u64).map(|number| of(self.buffer.text(number).unwrap_or_default()));
        let texts = array_of(texts);
        let view = |row| {
            let number = self.buffer.number(row).filter(|_| !self.buffer.is_missing(row));
            let at = number.and_then(|number| usize::try_from(number).ok());
            at.and_then(|at| texts.views().get(at).copied()).unwrap_or_default()
        };
        let views: Vec<View> = self.rows().map(view).collect();
        let buffers = texts.data_buffers().clone();
        let array = BinaryViewArrayGeneric::<T>::try_new(T::DATA_TYPE, views.into(), buffers, self.validity())?;
        Ok(array.boxed())
    }

    /// Returns the key of each cell, and the array of the distinct numbers; `None` if there are many.
    fn dictionary_of<T: NativeType>(self, of: impl Fn(u64) -> T) -> Option<Dictionary> {
        let (keys, entries) = self.dictionary()?;
        Some((
            keys,
            PrimitiveArray::from_vec(entries.into_iter().map(of).collect()).boxed(),
        ))
    }

    /// Returns the key of each cell, and the distinct numbers of those that have a value; `None` if there are many, or none.
    fn dictionary(self) -> Option<(Vec<u32>, Vec<u64>)> {
        let is_whole = self.buffer.validity() == Some(true);
        if is_whole && let Some(only) = self.buffer.only_number() {
            return Some((vec![0; self.len], vec![only]));
        }
        let most = MAX_ENTRIES.min(self.len / 4);
        let mut known: HashMap<u64, u32, RandomState> = HashMap::default();
        let (mut keys, mut entries) = (Vec::with_capacity(self.len), Vec::new());
        let mut last = None;
        for (row, number) in self.rows().zip(self.all()) {
            if !is_whole && self.buffer.is_missing(row) {
                keys.push(0);
                continue;
            }
            let key = match last {
                Some((before, key)) if before == number => key,
                _ => *known.entry(number).or_insert_with(|| {
                    entries.push(number);
                    entries.len() as u32 - 1
                }),
            };
            if entries.len() > most {
                return None;
            }
            last = Some((number, key));
            keys.push(key);
        }
        (!entries.is_empty()).then_some((keys, entries))
    }

    /// Returns the key of each cell, and the array of the distinct texts; `None` if most are distinct, and none is long.
    fn texts(self, kind: Kind) -> Option<Dictionary> {
        const NONE: u32 = u32::MAX;
        // A row group has some of the texts of all rows.
        let mut keys_of = vec![NONE; self.buffer.texts()];
        let mut entries: Vec<&[u8]> = Vec::new();
        let mut keys = Vec::with_capacity(self.len);
        let (mut bytes, mut distinct) = (0_usize, 0);
        for row in self.rows() {
            let number = self.buffer.number(row).filter(|_| !self.buffer.is_missing(row));
            let Some((number, key)) = number.and_then(|at| Some((at, keys_of.get_mut(usize::try_from(at).ok()?)?)))
            else {
                keys.push(0);
                continue;
            };
            let text = self.buffer.text(number).unwrap_or_default();
            if *key == NONE {
                *key = entries.len() as u32;
                entries.push(text);
                distinct += text.len();
            }
            bytes = bytes.saturating_add(text.len());
            keys.push(*key);
        }
        // Rows are bounded by the bytes of distinct texts, so no file may need many times as much.
        let few = entries.len() <= self.len.div_ceil(2) || bytes > 2 * distinct;
        few.then(|| {
            let entries = entries.into_iter();
            let array = match kind {
                Kind::Text => array_of(entries.map(as_text)).boxed(),
                _ => array_of(entries).boxed(),
            };
            (keys, array)
        })
    }
}

fn array_type(kind: Kind) -> ArrowDataType {
    polars_type(kind).to_arrow(CompatLevel::newest())
}

/// Returns texts or bytes as an array.
fn array_of<'a, T: ViewType + ?Sized>(texts: impl Iterator<Item = &'a T>) -> BinaryViewArrayGeneric<T> {
    MutableBinaryViewArray::from_values_iter(texts).freeze()
}

/// Returns bytes of a column of texts: what was pushed into it is one.
fn as_text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use polars_parquet::parquet::read::read_metadata;
    use polars_parquet::parquet::statistics::Statistics;
    use tracer_core::sample;
    use tracer_core::tables::{Dispatch, Fact, Table};

    use super::*;

    fn columns(rows: impl Iterator<Item = Dispatch>) -> Columns {
        let mut columns = Columns::new(Table::Dispatches);
        rows.for_each(|row| columns.push(&Fact::Dispatch(row)));
        columns
    }

    /// Returns the least and the greatest value of a column in each row group, and the number of missing ones, by the file's footer.
    fn statistics(columns: &Columns, window: usize, name: &str) -> Vec<(Option<i64>, Option<i64>, Option<i64>)> {
        let mut file = Vec::new();
        write(&mut file, columns, window, ("key", "value".to_owned())).unwrap();
        let metadata = read_metadata(&mut Cursor::new(&file)).unwrap();
        let of_group = |group: &polars_parquet::parquet::metadata::RowGroupMetadata| {
            let mut found = group.columns_under_root_iter(name).unwrap();
            match found.next().unwrap().statistics(&metadata.footer_buf).unwrap().unwrap() {
                Statistics::Int64(found) => (found.min_value, found.max_value, found.null_count),
                other => panic!("{other:?}"),
            }
        };
        metadata.row_groups.iter().map(of_group).collect()
    }

    #[test]
    fn statistics_are_those_of_the_cells() {
        let times = [
            None,
            Some(5),
            Some(5),
            None,
            Some(7),
            Some(5),
            None,
            None,
            None,
            None,
            None,
            None,
        ];
        let rows = (0..).zip(times).map(|(index, reserve_ns)| Dispatch {
            reserve_ns,
            ..sample::dispatch(index, 100)
        });
        let expected = [(Some(5), Some(7), Some(2)), (None, None, Some(6))];
        assert_eq!(statistics(&columns(rows.clone()), 6, "reserve_ns"), expected);
        // Also where the only number is in another row group.
        let rows = rows.map(|row| Dispatch {
            reserve_ns: row.reserve_ns.map(|_| 5),
            ..row
        });
        let expected = [(Some(5), Some(5), Some(2)), (None, None, Some(6))];
        assert_eq!(statistics(&columns(rows), 6, "reserve_ns"), expected);
        let rows = (0..64).map(|index| sample::dispatch(index, 1_000 + index * index));
        assert_eq!(
            statistics(&columns(rows), 64, "time_ns"),
            [(Some(1_000), Some(4_969), Some(0))]
        );
    }

    /// Short names between which a long one repeats: written plainly, it would be in the file a thousand times.
    #[test]
    fn a_long_text_is_written_once() {
        let long: std::sync::Arc<str> = "x".repeat(64 << 10).into();
        let name = |index: u64| match index % 2 {
            0 => format!("kernel {index}").into(),
            _ => long.clone(),
        };
        let columns = columns((0..2_000).map(|index| Dispatch {
            kernel: Some(name(index)),
            ..sample::dispatch(index, index)
        }));
        let at = Table::Dispatches
            .columns()
            .iter()
            .position(|column| column.name == "kernel");
        let buffer = &columns.buffers[at.unwrap()];
        let cells = Cells {
            buffer,
            begin: 0,
            len: columns.rows,
        };
        let (array, encoding) = cells.encode(Kind::Text).unwrap();
        assert_eq!(encoding, Encoding::RleDictionary);
        let keys = array.as_any().downcast_ref::<DictionaryArray<u32>>().unwrap();
        assert_eq!(keys.values().len(), 1_001);
        let plain = plain(buffer, Kind::Text).unwrap();
        let plain = plain.as_any().downcast_ref::<BinaryViewArrayGeneric<str>>().unwrap();
        let bytes: usize = plain.data_buffers().iter().map(|buffer| buffer.len()).sum();
        assert!(bytes < 2 * long.len(), "{bytes}");
        assert_eq!(plain.value(1_999), &*long);
    }
}
