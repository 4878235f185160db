//! The thread that writes: parts and manifests reach the disk here, and nowhere else while a trace is recorded.

pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use tracer_core::summary::Aggregated;
use tracer_files::{Folder, Mode, Owner};

use crate::columns::Columns;
use crate::error::{IoContext, StoreError};
use crate::manifest::Manifest;
use worker::Worker;

/// Jobs that can wait, but for full batches: those are bounded by their bytes.
const QUEUE: usize = 4;

/// Bytes of rows that wait for the disk, beyond which rows are aggregated, unless it is said otherwise.
pub(crate) const ROW_MEMORY: usize = 192 << 20;

/// How a trace is written: with whose rights, for whom, and over what.
#[derive(Clone, Debug)]
pub struct Placing {
    /// With whose rights; the trace belongs to that user.
    pub owner: Owner,
    /// Permissions of its folders, and without execution of its files.
    pub mode: Mode,
    /// Whether a trace that is there is replaced.
    pub overwrite: bool,
    /// Bytes of rows that may wait for the disk. Beyond, dispatches and doorbells are aggregated; with 0 they always are.
    pub row_memory: usize,
}

impl Default for Placing {
    fn default() -> Self {
        Self {
            owner: Owner::default(),
            mode: Mode::default(),
            overwrite: false,
            row_memory: ROW_MEMORY,
        }
    }
}

/// What is left of a trace's writer.
pub(crate) struct Closed {
    pub folder: Folder,
    /// Bytes of all its files.
    pub bytes: u64,
    /// The manifest that was written.
    pub manifest: Manifest,
    /// Rows that could not be written; of runs, what they stand for.
    pub lost: u64,
    /// What the runs that were written stand for.
    pub aggregated: Aggregated,
}

/// Something to be written.
pub(crate) enum Job {
    /// More rows of a table.
    Append(Columns),
    /// All rows that a table has beside those that were sealed before: what it had else is removed.
    Replace {
        /// Rows that the next job of this kind replaces.
        rows: Columns,
        /// Rows that nothing replaces.
        sealed: Option<Columns>,
    },
    /// The manifest.
    Manifest(Box<Manifest>),
    /// The last manifest, after which nothing comes.
    Close(Box<Manifest>),
    /// Nothing of the trace is to be left.
    Discard,
}

impl Job {
    /// Bytes of memory that its rows take.
    fn bytes(&self) -> usize {
        match self {
            Self::Append(rows) => rows.bytes(),
            Self::Replace { rows, sealed } => rows.bytes() + sealed.as_ref().map_or(0, Columns::bytes),
            Self::Manifest(_) | Self::Close(_) | Self::Discard => 0,
        }
    }
}

/// What the thread reports.
pub(crate) enum Report {
    /// Rows were written: a buffer to be used again.
    Written(Columns),
    /// The disk refused. The thread goes on with the next job.
    Failed(Failure),
}

/// A job that could not be done.
pub(crate) struct Failure {
    /// Why.
    pub error: StoreError,
    /// Rows that no later job can bring to the disk; of runs, what they stand for.
    pub lost: u64,
}

/// What was handed over and is not written yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    jobs: AtomicUsize,
    /// Bytes of their rows.
    bytes: AtomicUsize,
}

impl Pending {
    fn add(&self, bytes: usize) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The sending side of the thread.
pub(crate) struct Sink {
    dir: PathBuf,
    jobs: Option<Sender<Job>>,
    reports: Receiver<Report>,
    pending: Arc<Pending>,
    thread: Option<JoinHandle<Result<Option<Closed>, StoreError>>>,
}

impl Sink {
    /// Begins a trace: when this returns, its manifest is on disk.
    pub(crate) fn start(dir: &Path, manifest: Manifest, placing: Placing) -> Result<Self, StoreError> {
        let (jobs, inbox) = mpsc::channel();
        let (outbox, reports) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let pending = Arc::new(Pending::default());
        let body = {
            let (dir, pending) = (dir.to_owned(), Arc::clone(&pending));
            move || match Worker::begin(&dir, &manifest, &placing, outbox) {
                Ok(worker) => {
                    let _ = ready.send(Ok(()));
                    worker.run(&inbox, &pending)
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                    Ok(None)
                }
            }
        };
        let thread = thread::Builder::new().name("tracer-store".to_owned()).spawn(body);
        let mut sink = Self {
            dir: dir.to_owned(),
            jobs: Some(jobs),
            reports,
            pending,
            thread: Some(thread.context("start the writer thread", dir)?),
        };
        match begun.recv() {
            Ok(begun) => begun.map(|()| sink),
            Err(_) => Err(sink.failure()),
        }
    }

    /// Where the trace was begun.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes of rows that were handed over and are not written yet.
    pub(crate) fn pending(&self) -> usize {
        self.pending.bytes.load(Ordering::Relaxed)
    }

    /// Whether not too many jobs wait for one more that can wait elsewhere.
    pub(crate) fn has_room(&self) -> bool {
        self.pending.jobs.load(Ordering::Relaxed) < QUEUE
    }

    /// Hands a job over, however many wait.
    pub(crate) fn send(&mut self, job: Job) -> Result<(), StoreError> {
        self.pending.add(job.bytes());
        match self.jobs.as_ref().map(|jobs| jobs.send(job)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(self.failure()),
        }
    }

    /// What the thread has reported since.
    pub(crate) fn reports(&self) -> impl Iterator<Item = Report> {
        self.reports.try_iter()
    }

    /// Waits until all is written; the last job is to be [`Job::Close`] or [`Job::Discard`].
    pub(crate) fn finish(mut self) -> Result<Option<Closed>, StoreError> {
        self.join()
    }

    /// Why the thread ended before it was told to.
    fn failure(&mut self) -> StoreError {
        self.join()
            .err()
            .unwrap_or_else(|| StoreError::WriterGone(self.dir.clone()))
    }

    fn join(&mut self) -> Result<Option<Closed>, StoreError> {
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
