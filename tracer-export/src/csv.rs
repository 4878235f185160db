//! CSV: a file per table, with the columns of docs/events.md, and the metadata in a file beside them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use csv::Writer;
use serde::Serialize;
use tracer_core::tables::{Datum, Fact, Record, Table};

use crate::{About, ExportError, Exporter, Written};

/// Name of the file with the metadata, in JSON.
pub const MANIFEST: &str = "manifest.json";

/// Returns the name of a table's file.
#[must_use]
pub fn file_name(table: Table) -> String {
    format!("{}.csv", table.name())
}

/// Creates a file of the export by its name.
pub type Create<'a> = Box<dyn FnMut(&str) -> io::Result<Box<dyn Write>> + 'a>;

/// Writes CSV files. A table without rows has no file.
pub struct Csv<'a> {
    create: Create<'a>,
    files: BTreeMap<Table, Writer<Box<dyn Write>>>,
    about: About,
    written: Written,
}

impl<'a> Csv<'a> {
    /// Returns an exporter that creates its files with `create`.
    #[must_use]
    pub fn new(create: Create<'a>, about: &About) -> Self {
        Self {
            create,
            files: BTreeMap::new(),
            about: about.clone(),
            written: Written::default(),
        }
    }

    /// Returns the file of a table. A new one has its header.
    fn file(&mut self, table: Table) -> Result<&mut Writer<Box<dyn Write>>, ExportError> {
        use std::collections::btree_map::Entry;
        match self.files.entry(table) {
            Entry::Occupied(file) => Ok(file.into_mut()),
            Entry::Vacant(place) => {
                let mut file = Writer::from_writer((self.create)(&file_name(table))?);
                file.write_record(table.columns().iter().map(|column| column.name))?;
                Ok(place.insert(file))
            }
        }
    }
}

impl Exporter for Csv<'_> {
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError> {
        let record = Record::of(&fact);
        let file = self.file(record.table())?;
        for (_, datum) in record.data() {
            match datum {
                Datum::Missing => file.write_field("")?,
                Datum::Unsigned(n) => file.write_field(n.to_string())?,
                Datum::Signed(n) => file.write_field(n.to_string())?,
                Datum::Bool(is) => file.write_field(is.to_string())?,
                Datum::Text(text) => file.write_field(&*text)?,
            }
        }
        file.write_record(None::<&[u8]>)?;
        self.written.count(record.table());
        Ok(())
    }

    fn finish(mut self: Box<Self>, damage: &[String]) -> Result<Written, ExportError> {
        #[derive(Serialize)]
        struct Manifest<'a> {
            #[serde(flatten)]
            about: &'a About,
            rows: BTreeMap<&'static str, u64>,
        }
        for file in self.files.values_mut() {
            file.flush()?;
        }
        if !damage.is_empty() {
            self.about.damage = damage.to_vec();
        }
        let rows = self.written.rows.iter().map(|(table, rows)| (table.name(), *rows));
        let manifest = Manifest {
            about: &self.about,
            rows: rows.collect(),
        };
        let mut file = (self.create)(MANIFEST)?;
        serde_json::to_writer_pretty(&mut file, &manifest)?;
        file.write_all(b"\n")?;
        file.flush()?;
        Ok(self.written)
    }
}
