//! Tables and columns that a query can use.

use std::io::{self, Write};

use tracer_core::tables::{Kind, Table};
use tracer_query::{TRACES, origin_columns, traces_columns};

use crate::{cli::Described, report::layout::Layout};

/// Writes the columns of these tables.
pub fn write(out: &mut impl Write, described: Described, layout: Layout) -> io::Result<()> {
    let tables = match described {
        Described::All => Table::ALL.to_vec(),
        Described::One(table) => vec![table],
    };
    for table in tables {
        let columns = table.columns().iter().map(|column| {
            let unit = if column.unit.is_empty() { "" } else { column.unit };
            let null = if column.nullable { ", or null" } else { "" };
            let kind: &'static str = Kind::into(column.kind);
            (column.name, format!("{kind}{null}"), unit, column.meaning)
        });
        of_table(out, layout, table.name(), table.meaning(), columns)?;
    }
    let origin = origin_columns().into_iter();
    let origin = origin.map(|(name, meaning)| (name, "string".to_owned(), "", meaning));
    let meaning = "Three more columns that every table has: where a row comes from.";
    of_table(out, layout, "and", meaning, origin)?;
    if described == Described::All {
        let columns = traces_columns().into_iter();
        let columns = columns.map(|(name, kind, meaning)| (name, kind.to_owned(), "", meaning));
        of_table(out, layout, TRACES, "One row per trace.", columns)?;
    }
    Ok(())
}

fn of_table(
    out: &mut impl Write,
    layout: Layout,
    name: &str,
    meaning: &str,
    columns: impl Iterator<Item = (&'static str, String, &'static str, &'static str)>,
) -> io::Result<()> {
    layout.heading(out, name)?;
    layout.note(out, &plain(meaning))?;
    for (name, kind, unit, meaning) in columns {
        let unit = if unit.is_empty() {
            String::new()
        } else {
            format!(", {unit}")
        };
        out.write_all(
            layout
                .wrap(&format!("  {name} ({kind}{unit}): {}", plain(meaning)), 6)
                .as_bytes(),
        )?;
    }
    writeln!(out)
}

/// Returns the text of a documentation comment without its marks.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
