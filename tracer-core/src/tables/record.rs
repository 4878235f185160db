//! Rows as data has them: values by the names of their columns.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use serde::ser::SerializeMap;

use super::{Column, Fact, Kind, Row, Table, Target, Value};

/// A row, for formats that name its values: JSON, CSV. Numbers stay numbers, bytes are hexadecimal, and what is missing is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    table: Table,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    Missing,
    Number(u64),
    Bytes(Vec<u8>),
}

/// A value as formats with names have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum<'a> {
    /// It is missing: unknown, or not watched.
    Missing,
    /// A number that cannot be negative.
    Unsigned(u64),
    /// A number that can be negative.
    Signed(i64),
    /// True or false.
    Bool(bool),
    /// Text; bytes are hexadecimal.
    Text(Cow<'a, str>),
}

impl Target for Vec<Cell> {
    fn put(&mut self, value: Value<'_>) {
        self.push(match value {
            Value::Missing => Cell::Missing,
            Value::Number(bits) => Cell::Number(bits),
            Value::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
        });
    }
}

impl Record {
    /// Returns the row of a fact.
    #[must_use]
    pub fn of(fact: &Fact) -> Self {
        let mut cells = Vec::new();
        fact.put(&mut cells);
        Self {
            table: Table::of(fact),
            cells,
        }
    }

    pub(crate) fn of_row<R: Row>(row: &R) -> Option<Self> {
        let table = Table::ALL.into_iter().find(|table| table.name() == R::NAME)?;
        let mut cells = Vec::new();
        row.put(&mut cells);
        Some(Self { table, cells })
    }

    /// Returns the table.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.table
    }

    /// Returns the value of a column as text, addresses in hexadecimal; `None` if it is missing, or there is no such column.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<String> {
        let (column, datum) = self.data().find(|(known, _)| known.name == column)?;
        match datum {
            Datum::Missing => None,
            Datum::Unsigned(n) if column.unit == "address" => Some(format!("{n:#x}")),
            Datum::Unsigned(n) => Some(n.to_string()),
            Datum::Signed(n) => Some(n.to_string()),
            Datum::Bool(is) => Some(is.to_string()),
            Datum::Text(text) => Some(text.into_owned()),
        }
    }

    /// Returns every column with its value, in the order of the columns.
    pub fn data(&self) -> impl Iterator<Item = (&'static Column, Datum<'_>)> {
        self.values().map(|(column, cell)| {
            let datum = match cell {
                Cell::Missing => Datum::Missing,
                Cell::Bytes(bytes) if column.kind == Kind::Bytes => Datum::Text(hexadecimal(bytes).into()),
                Cell::Bytes(bytes) => Datum::Text(String::from_utf8_lossy(bytes)),
                Cell::Number(bits) => match column.kind {
                    Kind::I32 | Kind::I64 => Datum::Signed(bits.cast_signed()),
                    Kind::Bool => Datum::Bool(*bits != 0),
                    _ => Datum::Unsigned(*bits),
                },
            };
            (column, datum)
        })
    }

    /// Returns the number in a column; `None` if it is missing, is no number, or there is no such column.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<u64> {
        let (_, cell) = self.values().find(|(known, _)| known.name == column)?;
        match cell {
            Cell::Number(bits) => Some(*bits),
            Cell::Missing | Cell::Bytes(_) => None,
        }
    }

    fn values(&self) -> impl Iterator<Item = (&'static Column, &Cell)> {
        self.table.columns().iter().zip(&self.cells)
    }
}

/// A map from the names of the columns to the values.
impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.cells.len()))?;
        for (column, datum) in self.data() {
            match datum {
                Datum::Missing => map.serialize_entry(column.name, &None::<()>)?,
                Datum::Unsigned(n) => map.serialize_entry(column.name, &n)?,
                Datum::Signed(n) => map.serialize_entry(column.name, &n)?,
                Datum::Bool(is) => map.serialize_entry(column.name, &is)?,
                Datum::Text(text) => map.serialize_entry(column.name, &text)?,
            }
        }
        map.end()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::tables::{Dispatch, Ioctl};

    #[test]
    fn each_kind_of_value_keeps_its_meaning() {
        let dispatch = Fact::Dispatch(Dispatch {
            kernel: Some("k\"1\"".into()),
            index: u64::MAX,
            ..sample::dispatch(0, 5)
        });
        let record = Record::of(&dispatch);
        assert_eq!(record.table(), Table::Dispatches);
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!(
            (&value["kernel"], &value["index"]),
            (&"k\"1\"".into(), &u64::MAX.into())
        );
        assert_eq!(
            (&value["path"], &value["api_call"]),
            (&"doorbell".into(), &serde_json::Value::Null)
        );
        assert_eq!(value.as_object().unwrap().len(), Table::Dispatches.columns().len());
        let ioctl = Ioctl {
            pid: 1,
            tid: 2,
            enter_ns: 3,
            exit_ns: 4,
            device: "kfd",
            fd: -1,
            cmd: 5,
            name: "n".into(),
            ret: Some(-22),
            args: None,
            arg_in: Some(vec![0, 255]),
            arg_out: None,
        };
        let record = Record::of_row(&ioctl).unwrap();
        assert_eq!(record, Record::of(&Fact::Ioctl(ioctl)));
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!((&value["ret"], &value["fd"]), (&(-22).into(), &(-1).into()));
        assert_eq!(value["arg_in"], "00ff");
        let data: Vec<_> = record.data().map(|(column, datum)| (column.name, datum)).collect();
        assert!(data.contains(&("ret", Datum::Signed(-22))) && data.contains(&("args", Datum::Missing)));
        let texts = ["ret", "args", "arg_in", "name", "there is none"].map(|column| record.text(column));
        let expected = [Some("-22"), None, Some("00ff"), Some("n"), None];
        assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
        assert_eq!([record.number("cmd"), record.number("name")], [Some(5), None]);
        let object = Record::of(&dispatch).text("kernel_object");
        assert_eq!(object.as_deref(), Some("0x40"));
    }
}
