//! JSON lines: the metadata, and then each row of each table, as `tracer log --format jsonl` prints them.

use std::io::Write;

use serde::Serialize;
use tracer_core::foreign::Json;
use tracer_core::tables::{Fact, Record};

use crate::{About, ExportError, Exporter, Written};

/// Writes JSON lines.
#[derive(Debug)]
pub struct Jsonl<W> {
    out: W,
    written: Written,
}

/// Returns the line of a row, without a newline: its table, and its columns by their names.
///
/// # Errors
/// None for rows; serialization could fail in principle.
pub fn line(record: &Record) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        table: &'static str,
        #[serde(flatten)]
        record: &'a Record,
    }
    let table = record.table().name();
    // The line may be shown on a terminal, and has names from other programs.
    Ok(Json(&serde_json::to_string(&Line { table, record })?).to_string())
}

impl<W: Write> Jsonl<W> {
    /// Writes the first line: `{"manifest": ..}`.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn new(mut out: W, about: &About) -> Result<Self, ExportError> {
        #[derive(Serialize)]
        struct First<'a> {
            manifest: &'a About,
        }
        let first = serde_json::to_string(&First { manifest: about })?;
        writeln!(out, "{}", Json(&first))?;
        Ok(Self {
            out,
            written: Written::default(),
        })
    }
}

impl<W: Write> Exporter for Jsonl<W> {
    fn fact(&mut self, fact: Fact) -> Result<(), ExportError> {
        let record = Record::of(&fact);
        self.written.count(record.table());
        Ok(writeln!(self.out, "{}", line(&record)?)?)
    }

    fn finish(mut self: Box<Self>, _damage: &[String]) -> Result<Written, ExportError> {
        self.out.flush()?;
        Ok(self.written)
    }
}
