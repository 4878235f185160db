//! Errors of traces on disk, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

use tracer_core::tables::Table;

/// A reason why a trace could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The path does not exist.
    #[error("no trace at {}; check the path, or record one with `tracer record -o {}`", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// The path to read is not a trace.
    #[error("{} is not a trace ({reason}); give the path of the folder that `tracer record` wrote", path.display())]
    NotATrace {
        /// The path.
        path: PathBuf,
        /// The missing part.
        reason: String,
    },
    /// The path to write is not a trace. It is never overwritten.
    #[error("{} exists and is not a trace, so tracer does not touch it; choose another name with -o", .0.display())]
    Foreign(PathBuf),
    /// The path to write is an existing trace.
    #[error("{} exists; choose another name with -o, or replace it with --overwrite", .0.display())]
    Exists(PathBuf),
    /// The path to write is a folder of another user, who could change it during the recording.
    #[error("{} belongs to another user, so tracer does not use it; choose another name with -o", .0.display())]
    OthersFolder(PathBuf),
    /// The user with whose rights traces are written may not create one at the path.
    #[error("the user who called tracer may not create {}; choose another folder with -o", .0.display())]
    NotAllowed(PathBuf),
    /// Another recorder is writing that trace.
    #[error("another recorder is writing {}; choose another name with -o, or end that recorder", .0.display())]
    Busy(PathBuf),
    /// A newer version of tracer wrote the trace.
    #[error(
        "{} has format version {found}, and this tracer reads up to {known}; upgrade tracer to read it",
        path.display()
    )]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The newest version that this tracer reads.
        known: u64,
    },
    /// The manifest is not a valid manifest.
    #[error("cannot read {}: {reason}; restore the file from a copy of the trace, or record again", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The fault in the file.
        reason: String,
    },
    /// A part of a table cannot be read.
    #[error("cannot read {}; move it out of the trace to read the rest, or restore it from a copy", .0)]
    Damaged(Damage),
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table could not be encoded or queried.
    #[error("cannot {action} {}: {reason}", path.display())]
    Table {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The writer thread has ended.
    #[error("the thread that writes {} ended early; the trace misses all later rows", .0.display())]
    WriterGone(PathBuf),
}

/// A part of a table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", part.display())]
pub struct Damage {
    /// The table.
    pub table: Table,
    /// The file.
    pub part: PathBuf,
    /// The fault in the file.
    pub reason: String,
}

impl Damage {
    pub(crate) fn new(table: Table, part: &Path, reason: impl Into<String>) -> Self {
        Self {
            table,
            part: part.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Adds the attempted action and the file to an error.
pub(crate) trait IoContext<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io {
            action,
            path: path.to_owned(),
            source,
        })
    }
}
