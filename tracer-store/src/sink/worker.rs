//! The thread's side of the sink.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

use rustix::fs::{FallocateFlags, fallocate};
use tracer_core::tables::Table;
use tracer_core::tally::Aggregated;
use tracer_files::Folder;

use super::{Job, Pending, Placing, Report, Written};
use crate::columns::Columns;
use crate::compact::{Tiers, compact};
use crate::error::{IoContext, StoreError};
use crate::file;
use crate::folder::{self, Place};
use crate::manifest::{self, Manifest};
use crate::part::{self, PartName};
use crate::snapshot::Snapshot;

/// Name of the loss source that counts rows which the recorder could not write.
pub(crate) const LOSS_SOURCE: &str = "store";

/// Disk space reserved for the last manifest, in bytes: several times a manifest with dozens of libraries.
const RESERVED: u64 = 256 << 10;

/// The writer thread's state. Only this thread accesses the trace, and it has only the rights of the trace's owner.
pub(super) struct Worker {
    place: Place,
    /// Bytes of the reserved space.
    reserved: u64,
    tables: Vec<Stored>,
    /// The tables of things that continue to live, by name.
    snapshots: HashMap<&'static str, Snapshot>,
    reports: Sender<Report>,
    /// Rows that could not be written (for runs, the things that they represent), and the first reason.
    lost: u64,
    failed: Option<String>,
    /// The things that the written runs represent.
    aggregated: Aggregated,
}

/// The state of a table on disk.
#[derive(Default)]
struct Stored {
    folder: Option<Folder>,
    /// Number of the last part.
    last: u32,
    /// Rows on disk.
    rows: u64,
    /// Rows after the newest snapshot, which is not on disk if its write failed.
    newest: u64,
    /// Number of the last part that snapshots do not replace, and the rows of the parts up to it.
    base: u32,
    sealed: u64,
    /// Small parts, to be merged.
    tiers: Tiers,
}

impl Worker {
    pub(super) fn begin(
        dir: &Path,
        manifest: &Manifest,
        placing: &Placing,
        reports: Sender<Report>,
    ) -> Result<Self, StoreError> {
        let assumed = placing.owner.assume();
        assumed.context("assume the rights of the user who called tracer, to write", dir)?;
        let place = folder::prepare(dir, placing.overwrite, placing.mode)?;
        manifest.write(&place.folder)?;
        let mut worker = Self {
            place,
            reserved: 0,
            tables: Table::ALL.into_iter().map(|_| Stored::default()).collect(),
            snapshots: HashMap::new(),
            reports,
            lost: 0,
            failed: None,
            aggregated: Aggregated::default(),
        };
        // Without the reserve, the last manifest needs a disk that is not full; everything else works.
        worker.reserved = worker.reserve().map_or(0, |()| RESERVED);
        Ok(worker)
    }

    /// Reserves disk space for the last manifest. Some file systems do not support this.
    fn reserve(&self) -> io::Result<()> {
        let name = file::temporary(manifest::RESERVE);
        let file = self.place.folder.recreate_file(&name)?;
        let kept = fallocate(&file, FallocateFlags::empty(), 0, RESERVED);
        if kept.is_err() {
            self.place.folder.remove_file(&name)?;
        }
        Ok(kept?)
    }

    pub(super) fn run(mut self, inbox: &Receiver<Job>, pending: &Pending) -> Result<Option<Written>, StoreError> {
        for job in inbox {
            let bytes = job.bytes();
            if pending.is_asked()
                && let Ok(size) = folder::size(&self.place.folder)
            {
                pending.measured(size.saturating_sub(self.reserved));
            }
            match job {
                Job::Append(mut columns) => match self.append(&mut columns) {
                    // At the end no receiver takes buffers back.
                    Ok(()) => drop(self.reports.send(Report::Written(columns))),
                    Err(error) => self.note(error, columns.things()),
                },
                Job::Update(table, changed) => {
                    let snapshot = self
                        .snapshots
                        .entry(table.name())
                        .or_insert_with(|| Snapshot::new(table));
                    snapshot.apply(&changed);
                    drop(changed);
                    let (mut rows, mut sealed) = snapshot.take();
                    let done = self.replace(&mut rows, sealed.as_mut());
                    let stored = &mut self.tables[table as usize];
                    stored.newest = stored.sealed + rows.rows() as u64;
                    match done {
                        Ok(()) => stored.rows = stored.newest,
                        // The next snapshot also contains these rows, except those that were to be sealed.
                        Err(error) => self.note(error, sealed.map_or(0, |rows| rows.rows() as u64)),
                    }
                }
                Job::Manifest(manifest) => {
                    let done = manifest.write(&self.place.folder);
                    done.unwrap_or_else(|error| self.note(error, 0));
                }
                Job::Close(manifest) => return self.close(*manifest).map(Some),
                Job::Discard => {
                    self.release()?;
                    return self.place.discard().map(|()| None);
                }
            }
            pending.remove(bytes);
        }
        // The recorder gave up, which needs no manifest.
        let _ = self.release();
        Ok(None)
    }

    /// Reports a failure, and continues, because the disk may have room again.
    fn note(&mut self, error: StoreError, lost: u64) {
        self.lost = self.lost.saturating_add(lost);
        self.failed.get_or_insert_with(|| error.to_string());
        let _ = self.reports.send(Report::Failed { error, lost });
    }

    /// Merges small parts, and writes the last manifest.
    fn close(mut self, mut manifest: Manifest) -> Result<Written, StoreError> {
        let mut rows = Vec::new();
        for (table, stored) in Table::ALL.into_iter().zip(&self.tables) {
            self.lost += stored.newest.saturating_sub(stored.rows);
            // Many small parts are as good as few, so a merge that fails on a full disk is not a loss.
            let _ = stored.folder.as_ref().map(|folder| compact(folder, table));
            rows.push((table, stored.rows));
            manifest.counts.insert(table.name().to_owned(), stored.rows);
        }
        if self.lost > 0 {
            *manifest.losses.entry(LOSS_SOURCE.to_owned()).or_default() += self.lost;
        }
        if let Some(reason) = self.failed.take() {
            let lost = self.lost;
            manifest.complete = false;
            let warning = format!("the trace is incomplete: {lost} rows could not be written: {reason}");
            manifest.warnings.push(warning);
        }
        self.release()?;
        let folder = &self.place.folder;
        manifest.write(folder)?;
        Ok(Written {
            dir: folder.path().to_owned(),
            // A descriptor that does not share the lock, which ends with this thread.
            folder: folder.again().context("open", folder.path())?,
            manifest,
            rows,
            dropped: self.lost,
            aggregated: self.aggregated,
            bytes: folder::size(folder)?,
        })
    }

    /// Releases the reserved space.
    fn release(&self) -> Result<(), StoreError> {
        file::remove(&self.place.folder, &file::temporary(manifest::RESERVE))
    }

    fn append(&mut self, columns: &mut Columns) -> Result<(), StoreError> {
        let table = columns.table();
        let (folder, number) = self.next_part(table)?;
        part::write(&folder, PartName::single(number), columns)?;
        let written = &mut self.tables[table as usize];
        written.rows += columns.rows() as u64;
        let aggregated = match table {
            Table::DispatchRuns => Some(&mut self.aggregated.dispatches),
            Table::DoorbellRuns => Some(&mut self.aggregated.doorbells),
            _ => None,
        };
        if let Some(sum) = aggregated {
            *sum = sum.saturating_add(columns.things());
        }
        // The rows are already on disk, so a failed merge is not a loss.
        let _ = written.tiers.add(&folder, table, number, columns.rows());
        Ok(())
    }

    /// Writes a new snapshot. Leaves the replaced part for one more round, because a reader may be about to open it.
    fn replace(&mut self, rows: &mut Columns, sealed: Option<&mut Columns>) -> Result<(), StoreError> {
        let table = rows.table();
        let (folder, number) = self.next_part(table)?;
        part::remove_replaced(&folder)?;
        let base = self.tables[table as usize].base;
        let Some(sealed) = sealed else {
            return part::write(&folder, PartName::range(base + 1, number), rows);
        };
        // Living things come first: a recorder that is killed in between leaves two rows of each, and not none.
        if rows.rows() > 0 {
            let (folder, living) = self.next_part(table)?;
            part::write(&folder, PartName::single(living), rows)?;
        }
        part::write(&folder, PartName::range(base + 1, number), sealed)?;
        let written = &mut self.tables[table as usize];
        written.base = number;
        written.sealed += sealed.rows() as u64;
        Ok(())
    }

    /// Returns the folder of a table, and the number of its next part.
    fn next_part(&mut self, table: Table) -> Result<(Folder, u32), StoreError> {
        let folder = match &self.tables[table as usize].folder {
            Some(folder) => folder.clone(),
            None => self.make_table(table)?,
        };
        let written = &mut self.tables[table as usize];
        written.last += 1;
        Ok((folder, written.last))
    }

    fn make_table(&mut self, table: Table) -> Result<Folder, StoreError> {
        let trace = &self.place.folder;
        let path = trace.path().join(table.name());
        let name = OsStr::new(table.name());
        let folder = match trace.create_folder(name) {
            // The folder remains because of foreign files in an older trace.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => trace
                .folder(name)
                .and_then(|folder| folder.require_own().map(|()| folder)),
            created => created,
        };
        let folder = folder.context("create", &path)?;
        trace.sync().context("sync", trace.path())?;
        self.tables[table as usize].folder = Some(folder.clone());
        Ok(folder)
    }
}
