//! Errors of queries, in words that say what to do.

use polars::prelude::PolarsError;
use tracer_store::StoreError;

/// A reason why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A trace cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query is not valid, or names what does not exist.
    #[error("the query failed: {0}; `tracer query --schema` prints tables and columns")]
    Sql(String),
    /// The engine gave up: it lacks a part of SQL, or cannot decode a part that its checksum covers.
    #[error("the query engine gave up ({0}); write the query in another way, or use another engine (docs/scale.md)")]
    GaveUp(String),
}

impl From<PolarsError> for QueryError {
    /// Returns the error for a failure of the engine. Its first line says what is wrong; the others print the plan.
    fn from(error: PolarsError) -> Self {
        let text = error.to_string();
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown");
        Self::Sql(first.trim().trim_end_matches(':').to_owned())
    }
}
