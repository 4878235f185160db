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
    Array, BooleanArray, DictionaryArray, MutableBinaryViewArray, PrimitiveArray, new_null_array,
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
pub(super) fn plain(buffer: &Buffer, kind: Kind) -> Box<dyn Array> {
    let len = buffer.len();
    Cells { buffer, begin: 0, len }.plain(kind)
}

impl Cells<'_> {
    /// Returns the cells as an array, and the encoding of its pages.
    fn encode(self, kind: Kind) -> PolarsResult<(Box<dyn Array>, Encoding)> {
        if self.buffer.validity() == Some(false) {
            return Ok((self.plain(kind), Encoding::Plain));
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
        Ok((self.plain(kind), encoding))
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
    fn plain(self, kind: Kind) -> Box<dyn Array> {
        if self.buffer.validity() == Some(false) {
            return new_null_array(array_type(kind), self.len);
        }
        match kind {
            Kind::U32 => self.numbers(|bits| bits as u32),
            Kind::U64 => self.numbers(|bits| bits),
            Kind::I32 => self.numbers(|bits| bits as i32),
            Kind::I64 => self.numbers(u64::cast_signed),
            Kind::Bool => {
                let values = self.all().map(|bits| bits != 0).collect();
                BooleanArray::new(ArrowDataType::Boolean, values, self.validity()).boxed()
            }
            Kind::Text | Kind::Bytes => {
                let cell = |row| self.buffer.bytes(row).filter(|_| !self.buffer.is_missing(row));
                array_of(self.rows().map(cell), kind)
            }
        }
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

    /// Returns the key of each cell, and the array of the distinct numbers; `None` if there are many.
    fn dictionary_of<T: NativeType>(self, of: impl Fn(u64) -> T) -> Option<Dictionary> {
        let (keys, entries) = self.dictionary()?;
        Some((
            keys,
            PrimitiveArray::from_vec(entries.into_iter().map(of).collect()).boxed(),
        ))
    }

    /// Returns the key of each cell, and the distinct numbers; `None` if there are many.
    fn dictionary(self) -> Option<(Vec<u32>, Vec<u64>)> {
        if let Some(only) = self.buffer.only_number() {
            return Some((vec![0; self.len], vec![only]));
        }
        let most = MAX_ENTRIES.min(self.len / 4);
        let mut known: HashMap<u64, u32, RandomState> = HashMap::default();
        let (mut keys, mut entries) = (Vec::with_capacity(self.len), Vec::new());
        let mut last = None;
        for number in self.all() {
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
        Some((keys, entries))
    }

    /// Returns the key of each cell, and the array of the distinct texts; `None` if most are.
    fn texts(self, kind: Kind) -> Option<Dictionary> {
        const NONE: u32 = u32::MAX;
        // A row group has some of the texts of all rows.
        let mut keys_of = vec![NONE; self.buffer.texts()];
        let mut entries: Vec<&[u8]> = Vec::new();
        let mut keys = Vec::with_capacity(self.len);
        for row in self.rows() {
            let number = self.buffer.number(row).filter(|_| !self.buffer.is_missing(row));
            let Some((number, key)) = number.and_then(|at| Some((at, keys_of.get_mut(usize::try_from(at).ok()?)?)))
            else {
                keys.push(0);
                continue;
            };
            if *key == NONE {
                *key = entries.len() as u32;
                entries.push(self.buffer.text(number).unwrap_or_default());
            }
            keys.push(*key);
        }
        let few = entries.len() <= self.len.div_ceil(2);
        few.then(|| (keys, array_of(entries.into_iter().map(Some), kind)))
    }
}

fn array_type(kind: Kind) -> ArrowDataType {
    polars_type(kind).to_arrow(CompatLevel::newest())
}

/// Returns texts or bytes as an array.
fn array_of<'a>(cells: impl Iterator<Item = Option<&'a [u8]>>, kind: Kind) -> Box<dyn Array> {
    if kind == Kind::Text {
        let texts = cells.map(|cell| str::from_utf8(cell?).ok());
        MutableBinaryViewArray::<str>::from_iter(texts).freeze().boxed()
    } else {
        MutableBinaryViewArray::<[u8]>::from_iter(cells).freeze().boxed()
    }
}
