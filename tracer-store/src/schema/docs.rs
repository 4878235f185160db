//! The schema for people.

use std::fmt::Write;

use super::{Column, Table};

const INTRODUCTION: &str = "\
# Tables of a trace

This file is generated from the schema in `tracer-store/src/schema`; to write it anew:
`UPDATE_DOCS=1 cargo test -p tracer-store docs`.

A trace is a directory `NAME.trace/` with a `manifest.json` and one folder a table. A folder holds Parquet files (zstd):
`part-000007.5b9e03d2.parquet` is the seventh that was written, with its CRC-32 in the name;
`part-000001-000007.c1f7a604.parquet` replaces parts 1 to 7, and any of those that is still there no longer counts. A part
whose content has another checksum is reported as damaged, and not read. A tool that changes a part leaves the checksum
out of its name. In traces of version 1 there are none. Names with a leading dot are files that were never finished, and
`.reserve.tmp`, which keeps room on the disk for the last manifest while a trace is recorded. A table without rows has no
folder. `counts` in the manifest of a complete trace says how many rows each table has: a table that has others, or lacks its
folder, is reported as damaged.

- Times are CLOCK_MONOTONIC in ns; `started` and `ended` in the manifest hold the other clocks of the same moments.
- `pauses` in the manifest says how many times traced processes were paused for their probes, and the longest pause in ns.
- `ended_by` in the manifest says what ended the recording: `command-exited`, `target-exited`, `duration`, `signal` (with its `name`),
  `user`, `write-failure`; null after the recorder was killed, and in traces of versions before this field.
- Process and thread ids are those of the initial pid namespace.
- Numbers are exact: addresses and handles are unsigned 64-bit.
- In a part, rows are in the order of the table's time column; parts can overlap in time.
- Nullable columns can be added to a table at any time; older parts read as null there. Any other change is a new
  `format_version` in the manifest.
";

/// The text of docs/events.md.
#[must_use]
pub fn schema_markdown() -> String {
    let tables = Table::ALL.map(table_markdown);
    INTRODUCTION.to_owned() + &tables.concat()
}

fn table_markdown(table: Table) -> String {
    let mut text = format!(
        "\n## {}\n\n{} Ordered by `{}`.",
        table.name(),
        table.meaning(),
        table.time_column()
    );
    if table.is_snapshot() {
        text.push_str(" One row a thing: of rows written while it lived, the last.");
    }
    text.push_str("\n\n| column | type | unit | nullable | meaning |\n|---|---|---|---|---|\n");
    table
        .columns()
        .iter()
        .for_each(|column| write_column(&mut text, column));
    text
}

fn write_column(text: &mut String, column: &Column) {
    let Column {
        name,
        kind,
        nullable,
        unit,
        meaning,
    } = column;
    let nullable = if *nullable { "yes" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "| `{name}` | {} | {unit} | {nullable} | {meaning} |", kind.name());
}
