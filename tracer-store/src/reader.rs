//! Reading a trace: its manifest, and its parts.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use tracer_core::tables::Table;
use tracer_files::Folder;

use crate::error::{Damage, IoContext, StoreError};
use crate::facts::Facts;
use crate::folder;
use crate::manifest::Manifest;
use crate::part::{self, Part, PartName, Parts};

/// A trace on disk, complete or not.
#[derive(Clone, Debug)]
pub struct Trace {
    folder: Folder,
    manifest: Manifest,
}

/// The progress of a trace's recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The trace is whole.
    Complete,
    /// The trace is being recorded.
    Recording,
    /// The recorder was killed or failed: at most the last second is missing.
    Interrupted,
}

impl Trace {
    /// Opens the trace at `dir`. Reads no table yet: damage to one does not show here, see [`Self::damage`].
    ///
    /// # Errors
    /// If there is no trace, its manifest cannot be read, or a newer tracer wrote it.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::of(folder::open(dir)?)
    }

    /// Opens the trace in an open folder, wherever the folder is now.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn of(folder: Folder) -> Result<Self, StoreError> {
        let manifest = Manifest::read(&folder)?;
        Ok(Self { folder, manifest })
    }

    /// Returns the path at which the trace was opened.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the trace's manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the state of the recording.
    #[must_use]
    pub fn state(&self) -> State {
        match self.manifest.complete {
            true => State::Complete,
            false if folder::is_locked(&self.folder) => State::Recording,
            false => State::Interrupted,
        }
    }

    /// Returns the rows of these tables, in the order of time. Rows of the same time are in the order of [`Table`], then in the
    /// order of recording. Memory is bounded by the overlap of parts in time, not by the trace's size.
    ///
    /// For a trace that is being recorded, these are the rows that are on disk now.
    ///
    /// # Errors
    /// If a folder cannot be read. Damaged parts are found while iterating: see [`Facts`].
    pub fn facts(&self, tables: &[Table]) -> Result<Facts, StoreError> {
        self.parts(tables).map(Facts::new)
    }

    /// Counts the rows of a table on disk, from the metadata of its parts.
    ///
    /// # Errors
    /// If its folder cannot be read. Damaged parts do not count.
    pub fn rows(&self, table: Table) -> Result<u64, StoreError> {
        Ok(self.parts(&[table])?.rows())
    }

    /// Returns the parts that cannot be read, because they are truncated, have foreign columns, or are not Parquet, and the tables
    /// that lack rows which the recorder counted. Pages are not decoded.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn damage(&self) -> Result<Vec<Damage>, StoreError> {
        Ok(self.parts(&Table::ALL)?.damaged)
    }

    /// Returns the bytes of all files of the trace.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        folder::size(&self.folder)
    }

    /// Returns the parts of these tables that count now, and missing rows.
    pub(crate) fn parts(&self, tables: &[Table]) -> Result<Parts, StoreError> {
        let mut all = Parts::default();
        for &table in tables {
            let Parts { readable, damaged } = self.parts_of(table)?;
            all.readable.extend(readable);
            all.damaged.extend(damaged);
        }
        Ok(all)
    }

    /// Returns the parts of a table. If a recorder merges parts in between, their list changes, and is read again.
    fn parts_of(&self, table: Table) -> Result<Parts, StoreError> {
        let mut listed = self.list(table)?;
        loop {
            let mut parts = Parts::default();
            match &listed {
                Listed::Nothing => {}
                Listed::Damaged(damage) => parts.damaged.push(damage.clone()),
                Listed::Names(folder, names) => {
                    for &name in names {
                        match Part::open(table, folder, name) {
                            Ok(part) => parts.readable.push(part),
                            Err(damage) => parts.damaged.push(damage),
                        }
                    }
                }
            }
            let now = self.list(table)?;
            if parts.damaged.is_empty() || now.names() == listed.names() {
                parts.damaged.extend(self.missing(table, &listed, &parts));
                return Ok(parts);
            }
            listed = now;
        }
    }

    fn list(&self, table: Table) -> Result<Listed, StoreError> {
        let path = self.folder.path().join(table.name());
        match self.folder.folder(OsStr::new(table.name())) {
            Ok(folder) => {
                let names = part::list(&folder)?.parts;
                Ok(Listed::Names(folder, names))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Listed::Nothing),
            // A file, or a link.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                Ok(Listed::Damaged(Damage::new(table, &path, "it is not a folder")))
            }
            Err(error) => Err(error).context("read", &path),
        }
    }

    /// Reports rows that the recorder counted and that no part has. Damaged parts explain missing rows.
    fn missing(&self, table: Table, listed: &Listed, parts: &Parts) -> Option<Damage> {
        let written = self.manifest.count(table).filter(|_| parts.damaged.is_empty())?;
        let found = parts.rows();
        let reason = match listed {
            _ if found == written => return None,
            Listed::Nothing => format!("the folder is missing, and the recorder wrote {written} rows into it"),
            _ => format!("it has {found} rows, and the recorder wrote {written}"),
        };
        Some(Damage::new(table, &self.folder.path().join(table.name()), reason))
    }
}

/// What is at the name of a table in the folder.
enum Listed {
    Nothing,
    Damaged(Damage),
    Names(Folder, Vec<PartName>),
}

impl Listed {
    fn names(&self) -> &[PartName] {
        match self {
            Self::Names(_, names) => names,
            Self::Nothing | Self::Damaged(_) => &[],
        }
    }
}
