//! The schema as documentation.

use tracer_core::tables::Table;
use tracer_core::words::Named;

const INTRODUCTION: &str = "\
# Tables of a trace

This file is generated from the declarations in `tracer-core/src/tables`. To update it, run
`UPDATE_DOCS=1 cargo test -p tracer-store docs`.

A trace is a directory `NAME.trace/` with a `manifest.json` and one folder per table. A folder contains Parquet files (zstd).
`part-000007.5b9e03d2.parquet` is the seventh part; its CRC-32 is in the name. `part-000001-000007.c1f7a604.parquet` replaces
parts 1 to 7, which no longer count if they are still there. tracer reports a part with another checksum as damaged, and does not
read it. A tool that changes a part must remove the checksum from its name. Traces of version 1 have no checksums. Names that
begin with a dot are unfinished files, and `.reserve.tmp`, which reserves disk space for the last manifest during the recording.
A table without rows has no folder. `counts` in the manifest of a complete trace has the number of rows per table; tracer reports a
table with another number, or without its folder, as damaged.

- Times are CLOCK_MONOTONIC in ns. `started` and `ended` in the manifest have the other clocks at the same moments.
- `pauses` in the manifest is the number of pauses of traced processes, and the longest pause in ns.
- `ended_by` in the manifest is what ended the recording: `command-exited`, `target-exited`, `duration`, `signal` (with its `name`),
  `user`. It is null if the recorder was killed, and in traces of older versions.
- Process and thread ids are those of the initial pid namespace.
- Numbers are exact: addresses and handles are unsigned 64-bit.
- The rows of a part are in the order of the table's time column. Parts can overlap in time.
- A later version can add nullable columns to a table; older parts read as null there. Any other change is a new
  `format_version` in the manifest.
";

/// Returns the text of docs/events.md.
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
        text.push_str(" One row each: the last of the rows written during its life.");
    }
    text.push_str("\n\n| column | type | unit | nullable | meaning |\n|---|---|---|---|---|\n");
    for column in table.columns() {
        let (name, kind, unit) = (column.name, column.kind.name(), column.unit);
        let nullable = if column.nullable { "yes" } else { "" };
        text += &format!("| `{name}` | {kind} | {unit} | {nullable} | {} |\n", column.meaning);
    }
    text
}
