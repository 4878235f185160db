//! The thread that writes: parts and manifests reach the disk here, and nowhere else while a trace is recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use crate::columns::Columns;
use crate::error::{IoContext, StoreError};
use crate::file;
use crate::manifest::Manifest;
use crate::part::{self, PartName};
use crate::schema::Table;

/// Jobs that can wait. With them a burst of as many full batches passes while the disk stalls.
const QUEUE: usize = 4;

/// Something to be written.
pub(crate) enum Job {
    /// More rows of a table.
    Append(Columns),
    /// All rows that a table has: what it had before is removed.
    Replace(Columns),
    /// The manifest.
    Manifest(Box<Manifest>),
}

/// The sending side of the thread.
pub(crate) struct Sink {
    dir: PathBuf,
    jobs: Option<SyncSender<Job>>,
    written: Receiver<Columns>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

impl Sink {
    pub(crate) fn new(dir: &Path) -> Result<Self, StoreError> {
        let (jobs, inbox) = mpsc::sync_channel(QUEUE);
        let (outbox, written) = mpsc::channel();
        let worker = Worker {
            dir: dir.to_owned(),
            parts: [0; Table::ALL.len()],
            written: outbox,
        };
        let thread = thread::Builder::new()
            .name("tracer-store".to_owned())
            .spawn(move || worker.run(&inbox));
        let thread = Some(thread.context("start the thread that writes", dir)?);
        Ok(Self {
            dir: dir.to_owned(),
            jobs: Some(jobs),
            written,
            thread,
        })
    }

    /// Hands a job over if there is room for it; gives it back if there is none.
    pub(crate) fn offer(&mut self, job: Job) -> Result<Option<Job>, StoreError> {
        match self.jobs.as_ref().map(|jobs| jobs.try_send(job)) {
            Some(Ok(())) => Ok(None),
            Some(Err(TrySendError::Full(job))) => Ok(Some(job)),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(self.failure()),
        }
    }

    /// Hands a job over as soon as there is room for it.
    pub(crate) fn send(&mut self, job: Job) -> Result<(), StoreError> {
        match self.jobs.as_ref().map(|jobs| jobs.send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.failure()),
        }
    }

    /// Buffers whose rows were written, to be used again.
    pub(crate) fn written(&self) -> impl Iterator<Item = Columns> {
        self.written.try_iter()
    }

    /// Waits until all is written.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.join()
    }

    /// Why the thread ended before it was told to.
    fn failure(&mut self) -> StoreError {
        self.join()
            .err()
            .unwrap_or_else(|| StoreError::WriterGone(self.dir.clone()))
    }

    fn join(&mut self) -> Result<(), StoreError> {
        self.jobs = None;
        let Some(thread) = self.thread.take() else {
            return Err(StoreError::WriterGone(self.dir.clone()));
        };
        thread
            .join()
            .unwrap_or_else(|_| Err(StoreError::WriterGone(self.dir.clone())))
    }
}

impl Drop for Sink {
    /// What was handed over is written also when a recorder gives up.
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Who drops a sink without finishing it has an error of its own to report.
            let _ = self.join();
        }
    }
}

/// The thread's own side.
struct Worker {
    dir: PathBuf,
    /// Parts written, by table.
    parts: [u32; Table::ALL.len()],
    written: Sender<Columns>,
}

impl Worker {
    fn run(mut self, inbox: &Receiver<Job>) -> Result<(), StoreError> {
        for job in inbox {
            match job {
                Job::Append(columns) => {
                    self.append(&columns)?;
                    // Nobody takes buffers back any more at the end.
                    let _ = self.written.send(columns);
                }
                Job::Replace(columns) => self.replace(&columns)?,
                Job::Manifest(manifest) => manifest.write(&self.dir)?,
            }
        }
        Ok(())
    }

    fn append(&mut self, columns: &Columns) -> Result<(), StoreError> {
        let (folder, number) = self.next_part(columns.table())?;
        part::write(&folder, PartName::single(number), columns).map(drop)
    }

    /// Leaves the part that is replaced for one more round: a reader may be about to open it.
    fn replace(&mut self, columns: &Columns) -> Result<(), StoreError> {
        let (folder, last) = self.next_part(columns.table())?;
        part::remove_replaced(&folder)?;
        part::write(&folder, PartName::range(1, last), columns).map(drop)
    }

    /// Folder of a table, and the number of its next part.
    fn next_part(&mut self, table: Table) -> Result<(PathBuf, u32), StoreError> {
        let folder = self.dir.join(table.name());
        let number = &mut self.parts[table as usize];
        if *number == 0 {
            fs::create_dir_all(&folder).context("create", &folder)?;
            file::sync_folder_of(&folder)?;
        }
        *number += 1;
        Ok((folder, *number))
    }
}
