//! Reading a trace: what it says of itself, and which parts it has.

use std::path::{Path, PathBuf};

use crate::error::{Damage, StoreError};
use crate::facts::Facts;
use crate::folder;
use crate::manifest::Manifest;
use crate::part::{self, Part};
use crate::schema::Table;

/// A trace on disk, complete or not.
#[derive(Clone, Debug)]
pub struct Trace {
    dir: PathBuf,
    manifest: Manifest,
}

/// How far the recording of a trace came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is whole.
    Complete,
    /// It is being recorded.
    Recording,
    /// Its recorder was killed or failed: at most the last second is missing.
    Interrupted,
}

/// Parts of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub readable: Vec<Part>,
    pub damaged: Vec<Damage>,
}

impl Trace {
    /// Opens the trace at `dir`. No table is read yet: damage to one does not show here, see [`Self::damage`].
    ///
    /// # Errors
    /// If there is no trace, its manifest cannot be read, or a newer tracer wrote it.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let metadata = folder::metadata(dir)?.ok_or_else(|| StoreError::NotFound(dir.to_owned()))?;
        if !metadata.is_dir() {
            return Err(StoreError::NotATrace {
                path: dir.to_owned(),
                reason: "it is a file".to_owned(),
            });
        }
        Ok(Self {
            dir: dir.to_owned(),
            manifest: Manifest::read(dir)?,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it says of itself.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether it is whole.
    #[must_use]
    pub fn state(&self) -> State {
        match self.manifest.complete {
            true => State::Complete,
            false if folder::is_locked(&self.dir) => State::Recording,
            false => State::Interrupted,
        }
    }

    /// Rows of these tables, in the order of time; at the same time in the order of [`Table`], then as they were
    /// recorded. Memory is bounded by how far parts overlap in time, not by the trace's size.
    ///
    /// Of a trace that is being recorded, these are the rows that are on disk now.
    ///
    /// # Errors
    /// If a folder cannot be read. Damaged parts are found while iterating: see [`Facts`].
    pub fn facts(&self, tables: &[Table]) -> Result<Facts, StoreError> {
        let mut all = Parts::default();
        for &table in tables {
            let Parts { readable, damaged } = self.parts(table)?;
            all.readable.extend(readable);
            all.damaged.extend(damaged);
        }
        Ok(Facts::new(all))
    }

    /// Rows of a table on disk, by what its parts say.
    ///
    /// # Errors
    /// If its folder cannot be read. Damaged parts count nothing.
    pub fn rows(&self, table: Table) -> Result<u64, StoreError> {
        Ok(self.parts(table)?.readable.iter().map(|part| part.rows as u64).sum())
    }

    /// Parts that cannot be read: truncated, of foreign columns, or no Parquet at all. Their pages are not looked at.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn damage(&self) -> Result<Vec<Damage>, StoreError> {
        let mut damaged = Vec::new();
        for table in Table::ALL {
            damaged.extend(self.parts(table)?.damaged);
        }
        Ok(damaged)
    }

    /// Bytes of all its files.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn bytes_on_disk(&self) -> Result<u64, StoreError> {
        folder::size(&self.dir)
    }

    /// Parts of a table that count now. A recorder that ends meanwhile merges them: then they are listed again.
    pub(crate) fn parts(&self, table: Table) -> Result<Parts, StoreError> {
        let folder = self.dir.join(table.name());
        let mut listed = part::list(&folder)?.parts;
        loop {
            let mut parts = Parts::default();
            for name in &listed {
                match Part::open(table, &folder.join(name.file_name())) {
                    Ok(part) => parts.readable.push(part),
                    Err(damage) => parts.damaged.push(damage),
                }
            }
            let now = part::list(&folder)?.parts;
            if parts.damaged.is_empty() || now == listed {
                return Ok(parts);
            }
            listed = now;
        }
    }
}
