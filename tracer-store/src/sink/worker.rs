//! The thread's side of the sink.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

use rustix::fs::{FallocateFlags, fallocate};
use tracer_core::tables::Table;
use tracer_core::tally::Aggregated;
use tracer_files::Folder;

use super::{Closed, Failure, Job, Pending, Placing, Report};
use crate::columns::Columns;
use crate::compact::{Tiers, compact};
use crate::error::{IoContext, StoreError};
use crate::folder::{self, Place};
use crate::manifest::{self, Manifest};
use crate::part::{self, PartName};

/// Name of the loss source that counts rows which the recorder could not write.
pub(crate) const LOSS_SOURCE: &str = "store";

/// Disk space reserved for the last manifest, in bytes: several times a manifest with dozens of libraries.
const RESERVED: u64 = 256 << 10;

/// The writer thread's state. Only this thread accesses the trace, and it has only the rights of the trace's owner.
pub(super) struct Worker {
    place: Place,
    tables: Vec<Written>,
    reports: Sender<Report>,
    /// Rows that could not be written (for runs, the things that they represent), and the first reason.
    lost: u64,
    failed: Option<String>,
    /// The things that the written runs represent.
    aggregated: Aggregated,
}

/// The written state of a table.
#[derive(Default)]
struct Written {
    folder: Option<Folder>,
    /// Number of the last part.
    last: u32,
    /// Rows on disk.
    rows: u64,
    /// Rows of a snapshot that is newer than the snapshot on disk.
    stale: Option<u64>,
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
        let worker = Self {
            place,
            tables: Table::ALL.into_iter().map(|_| Written::default()).collect(),
            reports,
            lost: 0,
            failed: None,
            aggregated: Aggregated::default(),
        };
        // Without the reserve, the last manifest needs a disk that is not full; everything else works.
        let _ = worker.reserve();
        Ok(worker)
    }

    /// Reserves disk space for the last manifest. Some file systems do not support this.
    fn reserve(&self) -> io::Result<()> {
        let name = reserve_name();
        let file = self.place.folder.recreate_file(OsStr::new(&name))?;
        let kept = fallocate(&file, FallocateFlags::empty(), 0, RESERVED);
        if kept.is_err() {
            self.place.folder.remove_file(OsStr::new(&name))?;
        }
        Ok(kept?)
    }

    pub(super) fn run(mut self, inbox: &Receiver<Job>, pending: &Pending) -> Result<Option<Closed>, StoreError> {
        for job in inbox {
            let bytes = job.bytes();
            match job {
                Job::Append(columns) => {
                    let done = self.append(&columns);
                    if done.is_ok() {
                        // At the end no receiver takes buffers back.
                        let _ = self.reports.send(Report::Written(columns));
                    } else {
                        self.note(done, columns.things());
                    }
                }
                Job::Replace { rows, sealed } => {
                    let done = self.replace(&rows, sealed.as_ref());
                    let written = &mut self.tables[rows.table() as usize];
                    let all = written.sealed + rows.rows() as u64;
                    if done.is_ok() {
                        written.rows = all;
                        written.stale = None;
                    } else {
                        written.stale = Some(all);
                    }
                    // The next snapshot also contains these rows, except those that were to be sealed.
                    let lost = sealed.filter(|_| done.is_err()).map_or(0, |rows| rows.rows() as u64);
                    self.note(done, lost);
                }
                Job::Manifest(manifest) => {
                    let done = manifest.write(&self.place.folder);
                    self.note(done, 0);
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
    fn note(&mut self, done: Result<(), StoreError>, lost: u64) {
        if let Err(error) = done {
            self.lost = self.lost.saturating_add(lost);
            self.failed.get_or_insert_with(|| error.to_string());
            let _ = self.reports.send(Report::Failed(Failure { error, lost }));
        }
    }

    /// Merges small parts, and writes the last manifest.
    fn close(mut self, mut manifest: Manifest) -> Result<Closed, StoreError> {
        for table in Table::ALL {
            let written = &self.tables[table as usize];
            self.lost += written.stale.map_or(0, |rows| rows.saturating_sub(written.rows));
            let merged = match &written.folder {
                Some(folder) => compact(folder, table),
                None => Ok(()),
            };
            // Many small parts are as good as few, so a merge that fails on a full disk is not a loss.
            drop(merged);
        }
        let counts = Table::ALL.into_iter().zip(&self.tables);
        manifest.counts = counts
            .map(|(table, written)| (table.name().to_owned(), written.rows))
            .collect();
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
        Ok(Closed {
            bytes: folder::size(folder)?,
            // A descriptor that does not share the lock, which ends with this thread.
            folder: folder.again().context("open", folder.path())?,
            manifest,
            lost: self.lost,
            aggregated: self.aggregated,
        })
    }

    /// Releases the reserved space.
    fn release(&self) -> Result<(), StoreError> {
        let name = reserve_name();
        let removed = self.place.folder.remove_file(OsStr::new(&name));
        removed.context("remove", &self.place.folder.path().join(name))
    }

    fn append(&mut self, columns: &Columns) -> Result<(), StoreError> {
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
    fn replace(&mut self, rows: &Columns, sealed: Option<&Columns>) -> Result<(), StoreError> {
        let table = rows.table();
        let (folder, number) = self.next_part(table)?;
        part::remove_replaced(&folder)?;
        let base = self.tables[table as usize].base;
        let Some(sealed) = sealed else {
            return part::write(&folder, PartName::range(base + 1, number), rows).map(drop);
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

/// Returns the name of the file that reserves space. No reader opens it.
fn reserve_name() -> String {
    format!(".{}.tmp", manifest::RESERVE)
}
