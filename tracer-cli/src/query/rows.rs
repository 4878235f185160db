//! The rows of an answer in the formats of `tracer query`.

use std::io::{self, Write};

use tracer_core::foreign::{Json, Terminal};
use tracer_query::{Batch, Cell};

use crate::{
    cli::{Query, QueryFormat},
    report::layout::{Layout, Table, chosen},
};

/// Writes rows as they come, or collects them for a table whose widths depend on all of them.
pub enum Rows {
    /// A table, and how many rows it does not have.
    Table {
        table: Option<Table>,
        layout: Layout,
        most: usize,
        more: usize,
    },
    Jsonl(Vec<String>),
    Csv,
}

impl Rows {
    pub fn new(options: &Query, layout: Layout) -> Self {
        let most = if options.all { usize::MAX } else { options.top };
        let of = |layout: Layout| Self::Table {
            table: None,
            // It gets no more rows than it shows.
            layout: layout.with_rows(usize::MAX),
            most,
            more: 0,
        };
        match options.format {
            QueryFormat::Text if options.wide => of(layout.wide()),
            QueryFormat::Text => of(layout),
            QueryFormat::Markdown => of(layout.markdown()),
            QueryFormat::Jsonl => Self::Jsonl(Vec::new()),
            QueryFormat::Csv => Self::Csv,
        }
    }

    /// Takes rows. The first batch has no row, but the columns.
    pub fn take(&mut self, out: &mut impl Write, batch: &Batch) -> anyhow::Result<()> {
        let rows = (0..batch.rows()).map(|row| batch.row(row));
        match self {
            Self::Table { table, most, more, .. } => {
                let table = table.get_or_insert_with(|| {
                    let names = batch.names().map(|name| Terminal(name).to_string());
                    let columns = names.zip(batch.are_numbers());
                    let columns: Vec<_> = columns.map(|(name, is_number)| chosen(name, is_number)).collect();
                    Table::new(&columns)
                });
                for row in rows {
                    match most.checked_sub(1) {
                        Some(left) => {
                            *most = left;
                            table.row(row.map(|cell| text(&cell)).collect());
                        }
                        None => *more += 1,
                    }
                }
            }
            Self::Jsonl(names) => {
                if names.is_empty() {
                    *names = batch.names().map(json_text).collect::<Result<_, _>>()?;
                }
                for row in rows {
                    write!(out, "{{")?;
                    for (at, (name, cell)) in names.iter().zip(row).enumerate() {
                        let comma = if at > 0 { "," } else { "" };
                        write!(out, "{comma}{name}:{}", json(&cell)?)?;
                    }
                    writeln!(out, "}}")?;
                }
            }
            Self::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                if batch.rows() == 0 {
                    writer.write_record(batch.names())?;
                }
                for row in rows {
                    writer.write_record(row.map(|cell| plain(&cell)))?;
                }
                writer.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the table.
    pub fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let Self::Table {
            table: Some(mut table),
            layout,
            more,
            ..
        } = self
        else {
            return Ok(());
        };
        if table.is_empty() {
            return writeln!(out, "no rows");
        }
        table.shorten_widest();
        table.write_alone(out, layout)?;
        match more {
            0 => Ok(()),
            more => writeln!(out, "... {more} more; --all shows them"),
        }
    }
}

/// Returns a cell of a table.
fn text(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Float(number) if number.is_finite() && number.fract() != 0.0 => format!("{number:.3}"),
        Cell::Text(text) => Terminal(text).to_string(),
        cell => plain(cell),
    }
}

/// Returns a cell of a CSV file.
fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Bytes(bytes) => hex(bytes),
    }
}

/// Returns a value of a JSON object. Numbers that JSON does not have are texts.
fn json(cell: &Cell) -> serde_json::Result<String> {
    Ok(match cell {
        Cell::Null => "null".to_owned(),
        Cell::Float(number) if !number.is_finite() => json_text(&number.to_string())?,
        Cell::Float(number) => serde_json::to_string(number)?,
        Cell::Text(text) => json_text(text)?,
        Cell::Bytes(bytes) => json_text(&hex(bytes))?,
        cell => plain(cell),
    })
}

fn json_text(text: &str) -> serde_json::Result<String> {
    Ok(Json(&serde_json::to_string(text)?).to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
