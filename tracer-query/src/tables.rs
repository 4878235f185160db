//! The tables of a query: the rows of all traces, and where each comes from.

use std::sync::Arc;

use polars::prelude::*;
use tracer_core::tables::{Kind, Table};
use tracer_store::{Damage, Files};

use crate::error::QueryError;
use crate::origin::Origin;

/// The name of the table with one row per trace.
pub const TRACES: &str = "traces";

/// Returns name and meaning of the columns that every table has after its own.
#[must_use]
pub const fn origin_columns() -> [(&'static str, &'static str); 3] {
    [
        ("trace", "The trace's path, as it was given."),
        ("host", "The name of the machine that the trace was taken on."),
        ("start", "When the recording started: RFC 3339, UTC."),
    ]
}

/// Returns name, type and meaning of the columns of table `traces`, after those of [`origin_columns`].
#[must_use]
pub const fn traces_columns() -> [(&'static str, &'static str, &'static str); 7] {
    [
        (
            "started_ns",
            "uint64",
            "CLOCK_MONOTONIC at the start, as the times of the other tables, ns.",
        ),
        ("kernel", "string", "Release of the machine's kernel."),
        (
            "command",
            "string",
            "The command with its arguments; null if tracer attached to processes.",
        ),
        (
            "complete",
            "boolean",
            "Whether the recorder finished and wrote everything.",
        ),
        (
            "simulated",
            "string",
            "Why its GPUs are known to be simulated; null does not claim that they are real.",
        ),
        (
            "watched",
            "string",
            "The sources that were watched, separated by spaces. Tables of others are empty.",
        ),
        (
            "lost",
            "uint64",
            "Events lost; null if the recorder was killed before it counted them.",
        ),
    ]
}

/// Returns the table of the traces.
pub(crate) fn traces(traces: &[Origin]) -> PolarsResult<LazyFrame> {
    let texts = |name: &str, of: &dyn Fn(&Origin) -> Option<String>| {
        let cells = traces.iter().map(of);
        StringChunked::from_iter_options(name.into(), cells).into_column()
    };
    let numbers = |name: &str, of: &dyn Fn(&Origin) -> Option<u64>| {
        UInt64Chunked::from_iter_options(name.into(), traces.iter().map(of)).into_column()
    };
    let complete = traces.iter().map(|origin| Some(origin.trace.manifest().complete));
    let columns = vec![
        texts("trace", &|origin| Some(origin.name.clone())),
        texts("host", &|origin| origin.host()),
        texts("start", &|origin| origin.start()),
        numbers("started_ns", &|origin| {
            Some(origin.trace.manifest().started.monotonic_ns)
        }),
        texts("kernel", &|origin| origin.kernel()),
        texts("command", &|origin| origin.command()),
        BooleanChunked::from_iter_options("complete".into(), complete).into_column(),
        texts("simulated", &|origin| origin.trace.manifest().simulated.clone()),
        texts("watched", &|origin| {
            Some(origin.trace.manifest().capabilities.join(" "))
        }),
        numbers("lost", &|origin| origin.lost()),
    ];
    Ok(DataFrame::new(traces.len(), columns)?.lazy())
}

/// Returns the rows of a table in all traces, and the parts that are left out.
pub(crate) fn frame(traces: &[Origin], table: Table) -> Result<(LazyFrame, Vec<Damage>), QueryError> {
    let mut left_out = Vec::new();
    let mut frames = Vec::with_capacity(traces.len());
    for origin in traces {
        let Files { files, damaged, .. } = origin.trace.files(table)?;
        left_out.extend(damaged);
        let rows = match files.is_empty() {
            true => DataFrame::empty_with_schema(&schema(table)).lazy(),
            false => scan(table, files)?,
        };
        let names = [Some(origin.name.clone()), origin.host(), origin.start()];
        let columns = origin_columns().into_iter().zip(names);
        let cell = |value: Option<String>| value.map_or_else(|| lit(NULL).cast(DataType::String), lit);
        let columns: Vec<Expr> = columns.map(|((name, _), value)| cell(value).alias(name)).collect();
        frames.push(rows.with_columns(columns));
    }
    let united = concat(
        frames,
        UnionArgs {
            // One query reads many files; their order is not the order of time anyway.
            maintain_order: true,
            ..UnionArgs::default()
        },
    );
    Ok((united?, left_out))
}

/// Returns the rows of a table's parts. Columns that a part lacks are null, and columns of newer versions are ignored.
fn scan(table: Table, files: Vec<std::fs::File>) -> PolarsResult<LazyFrame> {
    let schema = Arc::new(schema(table));
    let options = ParquetOptions {
        schema: Some(schema),
        ..ParquetOptions::default()
    };
    let arguments = UnifiedScanArgs {
        missing_columns_policy: MissingColumnsPolicy::Insert,
        extra_columns_policy: ExtraColumnsPolicy::Ignore,
        glob: false,
        hive_options: HiveOptions::new_disabled(),
        ..UnifiedScanArgs::default()
    };
    let plan = DslBuilder::scan_parquet(ScanSources::Files(files.into()), options, arguments)?;
    Ok(LazyFrame::from(plan.build()))
}

/// Returns names and types of a table's own columns.
fn schema(table: Table) -> Schema {
    let columns = table.columns().iter();
    columns
        .map(|column| (PlSmallStr::from_static(column.name), polars_type(column.kind)))
        .collect()
}

/// Returns the type of a column, as the store writes it.
const fn polars_type(kind: Kind) -> DataType {
    match kind {
        Kind::U32 => DataType::UInt32,
        Kind::U64 => DataType::UInt64,
        Kind::I32 => DataType::Int32,
        Kind::I64 => DataType::Int64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::String,
        Kind::Bytes => DataType::Binary,
    }
}
