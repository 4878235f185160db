//! Errors of exports.

use std::io;

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The output could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A row could not be written as CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A row could not be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The database refused a row.
    #[error("the database: {0}")]
    Database(#[from] rusqlite::Error),
}
