//! Tables as polars sees them, for queries.

use polars::prelude::*;

use crate::error::{Damage, StoreError};
use crate::part::Part;
use crate::reader::{Parts, Trace};
use crate::schema::{self, Table};

/// A table to query.
#[derive(Clone)]
pub struct Scan {
    /// Its rows; not in the order of time where parts overlap.
    pub frame: LazyFrame,
    /// Parts whose rows are not among them.
    pub damaged: Vec<Damage>,
}

impl Trace {
    /// A table to query, with the columns of [`Table::columns`] whatever version wrote it. Nothing is read before the
    /// frame is collected. Parts that cannot be opened are left out, and reported.
    ///
    /// # Errors
    /// If the table's folder cannot be read.
    pub fn scan(&self, table: Table) -> Result<Scan, StoreError> {
        let Parts { readable, damaged } = self.parts(table)?;
        let frame = scan_parts(table, &readable).map_err(|error| StoreError::Table {
            action: "query",
            path: self.dir().join(table.name()),
            reason: error.to_string(),
        })?;
        Ok(Scan { frame, damaged })
    }
}

fn scan_parts(table: Table, parts: &[Part]) -> PolarsResult<LazyFrame> {
    let schema = schema::polars_schema(table);
    if parts.is_empty() {
        return Ok(DataFrame::empty_with_schema(&schema).lazy());
    }
    let paths = parts
        .iter()
        .map(|part| PlRefPath::try_from_path(&part.path))
        .collect::<PolarsResult<_>>()?;
    let args = UnifiedScanArgs {
        schema: Some(schema.into()),
        // A trace's name can hold what looks like a pattern.
        glob: false,
        missing_columns_policy: MissingColumnsPolicy::Insert,
        extra_columns_policy: ExtraColumnsPolicy::Ignore,
        ..UnifiedScanArgs::default()
    };
    Ok(
        DslBuilder::scan_parquet(ScanSources::Paths(paths), ParquetOptions::default(), args)?
            .build()
            .into(),
    )
}
