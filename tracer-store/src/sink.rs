//! The writer thread: during the recording, parts and manifests reach the disk only here.

pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use tracer_core::tables::Table;
use tracer_core::tally::Aggregated;
use tracer_files::{Folder, Mode, Owner};

use crate::columns::Columns;
use crate::error::{IoContext, StoreError};
use crate::manifest::Manifest;
use crate::snapshot::Changed;
use worker::Worker;

/// The maximum number of waiting jobs, except for full batches: those are bounded by their bytes.
const QUEUE: usize = 4;

/// Default maximum of the bytes of rows that wait for the disk. Beyond it, rows are aggregated.
pub(crate) const ROW_MEMORY: usize = 64 << 20;

/// How a trace is written: the owner, the permissions, and whether to overwrite.
#[derive(Clone, Debug)]
pub struct Placing {
    /// The user with whose rights the trace is written, and who owns it.
    pub owner: Owner,
    /// Permissions of its folders; its files have the same, without the right to execute.
    pub mode: Mode,
    /// Whether an existing trace is replaced.
    pub overwrite: bool,
    /// Bytes of rows that may wait for the disk. Beyond it, dispatches and doorbells are aggregated; with 0 they always are.
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

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Written {
    /// The path at which the trace was begun.
    pub dir: PathBuf,
    /// The trace's folder, wherever it is now. `dir` can be another folder by now.
    pub folder: Folder,
    /// The written manifest.
    pub manifest: Manifest,
    /// Rows, by table.
    pub rows: Vec<(Table, u64)>,
    /// Rows that were dropped because the disk did not keep up, or could not be written; for runs, the things that they represent.
    pub dropped: u64,
    /// Dispatches and doorbells without rows of their own that are in written runs.
    pub aggregated: Aggregated,
    /// Size of the trace.
    pub bytes: u64,
}

/// A job for the writer thread.
pub(crate) enum Job {
    /// More rows of a table.
    Append(Columns),
    /// Changed rows of a table of things that continue to live.
    Update(Table, Changed),
    /// The manifest.
    Manifest(Box<Manifest>),
    /// The last manifest. No job follows it.
    Close(Box<Manifest>),
    /// Removes the whole trace.
    Discard,
}

impl Job {
    /// Returns the bytes of memory that the job's rows take.
    fn bytes(&self) -> usize {
        match self {
            Self::Append(rows) => rows.bytes(),
            Self::Update(_, changed) => changed.bytes(),
            Self::Manifest(_) | Self::Close(_) | Self::Discard => 0,
        }
    }
}

/// A report of the writer thread.
pub(crate) enum Report {
    /// Rows were written: a buffer to use again.
    Written(Columns),
    /// The disk refused. The thread continues with the next job.
    Failed {
        /// The cause.
        error: StoreError,
        /// Rows that no later job can write to the disk; for runs, the things that they represent.
        lost: u64,
    },
}

/// The jobs that were handed over and are not written yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    jobs: AtomicUsize,
    /// Bytes of their rows.
    bytes: AtomicUsize,
    /// Size of the trace on disk, as the thread measured it for the last time.
    size: AtomicU64,
    /// Whether somebody asked for it since.
    asked: AtomicBool,
}

/// The size of a trace that is being written. The writer measures it only if somebody asked.
#[derive(Clone, Debug)]
pub struct SizeGauge(Arc<Pending>);

impl SizeGauge {
    /// Returns the bytes on disk, as measured after the last call; 0 at first.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.asked.store(true, Ordering::Relaxed);
        self.0.size.load(Ordering::Relaxed)
    }
}

impl Pending {
    /// Returns whether somebody asked for the size since the last call.
    fn is_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    fn measured(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
    }

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
    thread: Option<JoinHandle<Result<Option<Written>, StoreError>>>,
}

impl Sink {
    /// Begins a trace. When this returns, its manifest is on disk.
    pub(crate) fn start(dir: &Path, manifest: Manifest, placing: Placing) -> Result<Self, StoreError> {
        let (jobs, inbox) = mpsc::channel();
        let (outbox, reports) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let pending = Arc::new(Pending::default());
        let body = {
            let (dir, pending) = (dir.to_owned(), Arc::clone(&pending));
            move || {
                let worker = Worker::begin(&dir, &manifest, &placing, outbox)?;
                let _ = ready.send(());
                worker.run(&inbox, &pending)
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
            Ok(()) => Ok(sink),
            Err(_) => Err(sink.failure()),
        }
    }

    /// Returns the bytes of rows that were handed over and are not written yet.
    pub(crate) fn pending(&self) -> usize {
        self.pending.bytes.load(Ordering::Relaxed)
    }

    /// Returns the gauge of the trace's size.
    pub(crate) fn size_gauge(&self) -> SizeGauge {
        SizeGauge(Arc::clone(&self.pending))
    }

    /// Returns whether few enough jobs wait to add one that can wait elsewhere.
    pub(crate) fn has_room(&self) -> bool {
        self.pending.jobs.load(Ordering::Relaxed) < QUEUE
    }

    /// Hands over a job, however many wait.
    pub(crate) fn send(&mut self, job: Job) -> Result<(), StoreError> {
        self.pending.add(job.bytes());
        match self.jobs.as_ref().map(|jobs| jobs.send(job)) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// Returns the thread's reports since the last call.
    pub(crate) fn reports(&self) -> impl Iterator<Item = Report> {
        self.reports.try_iter()
    }

    /// Writes the last manifest, and waits until everything is written.
    pub(crate) fn close(mut self, manifest: Manifest) -> Result<Written, StoreError> {
        self.send(Job::Close(Box::new(manifest)))?;
        self.join()?.ok_or_else(|| self.gone())
    }

    /// Removes the whole trace.
    pub(crate) fn discard(mut self) -> Result<(), StoreError> {
        self.send(Job::Discard)?;
        self.join().map(drop)
    }

    /// Returns why the thread ended early.
    fn failure(&mut self) -> StoreError {
        self.join().err().unwrap_or_else(|| self.gone())
    }

    fn gone(&self) -> StoreError {
        StoreError::WriterGone(self.dir.clone())
    }

    /// Waits until the thread ends, after its last job.
    fn join(&mut self) -> Result<Option<Written>, StoreError> {
        self.jobs = None;
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| Err(self.gone()))
    }
}

impl Drop for Sink {
    /// Writes the jobs that were handed over, also when a recorder gives up.
    fn drop(&mut self) {
        // A caller that drops a sink without closing it has its own error to report.
        let _ = self.join();
    }
}
