//! What can go wrong with a trace on disk, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is nothing at that path.
    #[error("no trace at {}; check the path, or record one with `tracer record -o {}`", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// Something else than a trace is there, and was asked to be read.
    #[error("{} is not a trace ({reason}); give the path of the folder that `tracer record` wrote", path.display())]
    NotATrace {
        /// The path.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Something else than a trace is where one was to be written. It is never overwritten.
    #[error("{} exists and is not a trace, so tracer does not touch it; choose another name with -o", .0.display())]
    Foreign(PathBuf),
    /// A trace is where one was to be written.
    #[error("{} exists; choose another name with -o, or replace it with --overwrite", .0.display())]
    Exists(PathBuf),
    /// A folder of another user is where a trace was to be written: its owner could change it meanwhile.
    #[error("{} belongs to another user, so tracer does not use it; choose another name with -o", .0.display())]
    OthersFolder(PathBuf),
    /// The user with whose rights traces are written may not make one there.
    #[error("the user who called tracer may not create {}; choose another folder with -o", .0.display())]
    NotAllowed(PathBuf),
    /// A recorder is writing that trace.
    #[error("another recorder is writing {}; choose another name with -o, or end that recorder", .0.display())]
    Busy(PathBuf),
    /// The trace was written by a newer tracer.
    #[error(
        "{} has format version {found}, and this tracer reads up to {known}; upgrade tracer to read it",
        path.display()
    )]
    Version {
        /// The trace.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version that this tracer knows.
        known: u64,
    },
    /// The manifest is no manifest.
    #[error("cannot read {}: {reason}; restore the file from a copy of the trace, or record again", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of a table cannot be read.
    #[error("cannot read {}; move it out of the trace to read the rest, or restore it from a copy", .0)]
    Damaged(Damage),
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// A table could not be encoded or queried.
    #[error("cannot {action} {}: {reason}", path.display())]
    Table {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        reason: String,
    },
    /// The writer thread is gone.
    #[error("the thread that writes {} ended early; the trace misses all later rows", .0.display())]
    WriterGone(PathBuf),
}

/// A part of a table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", part.display())]
pub struct Damage {
    /// The file.
    pub part: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl Damage {
    pub(crate) fn new(part: &Path, reason: impl Into<String>) -> Self {
        Self {
            part: part.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Says what was tried on which file.
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
