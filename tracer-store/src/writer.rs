//! Recording: facts in, parts out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tracer_core::fact::{Fact, Loss};

use crate::columns::Columns;
use crate::compact::compact;
use crate::error::StoreError;
use crate::folder::{self, Lock};
use crate::manifest::Manifest;
use crate::part::WINDOW;
use crate::schema::Table;
use crate::sink::{Job, Sink};
use crate::snapshot::Snapshot;

/// Age at which rows are handed to the writer thread. With the time between ticks and that of a write it stays below
/// the second that a killed recorder may lose.
const MAX_AGE: Duration = Duration::from_millis(400);

/// Rows of a full batch.
const BATCH: usize = WINDOW;

/// Rows of a table that are kept while the disk does not keep up; later ones are dropped, and counted.
const MAX_WAITING: usize = 16 * BATCH;

/// While a full batch waits for the disk, it is offered again each time that this many rows came.
const RETRY: usize = BATCH / 16;

/// Buffers of a table that are kept to be used again.
const SPARE: usize = 2;

/// Source name of rows that were dropped here.
const LOSS_SOURCE: &str = "store";

/// Writes a trace.
///
/// [`Self::push`] only appends to buffers in memory; encoding, compression and the disk are a thread's of its own.
/// Dropping a writer without [`Self::finish`] leaves what a killed recorder leaves: a readable, incomplete trace.
pub struct TraceWriter {
    dir: PathBuf,
    manifest: Manifest,
    manifest_changed: bool,
    /// Rows not handed over yet, by table; of a snapshot table none.
    waiting: Vec<Waiting>,
    last_tick: Instant,
    sink: Sink,
    /// Rows written, handed over or waiting, by table.
    counts: [u64; Table::ALL.len()],
    dropped: u64,
    failure: Option<StoreError>,
    _lock: Lock,
}

/// Rows of one table on their way.
struct Waiting {
    columns: Columns,
    spare: Vec<Columns>,
    snapshot: Option<Snapshot>,
    /// Whether there is something to be handed over.
    dirty: bool,
    /// A time before the oldest row came.
    since: Option<Instant>,
}

/// What a recorder wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where.
    pub dir: PathBuf,
    /// Rows, by table.
    pub rows: Vec<(Table, u64)>,
    /// Rows that were dropped because the disk did not keep up.
    pub dropped: u64,
    /// Size of the trace.
    pub bytes: u64,
}

impl TraceWriter {
    /// Begins a trace at `dir`, which is made; an empty folder will do too. A trace that is there is replaced only if
    /// `overwrite` says so, and anything else never. The manifest is on disk at once, as of a trace that is not
    /// complete.
    ///
    /// # Errors
    /// If something is there, or the folder cannot be written.
    pub fn create(dir: &Path, mut manifest: Manifest, overwrite: bool) -> Result<Self, StoreError> {
        let lock = folder::prepare(dir, overwrite)?;
        manifest.complete = false;
        manifest.write(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            manifest,
            manifest_changed: false,
            waiting: Table::ALL.into_iter().map(Waiting::new).collect(),
            last_tick: Instant::now(),
            sink: Sink::new(dir)?,
            counts: [0; Table::ALL.len()],
            dropped: 0,
            failure: None,
            _lock: lock,
        })
    }

    /// Adds a row to its table. Never waits for the disk.
    ///
    /// Queues and processes may be pushed as they are, while they live: of each one, the last row pushed counts.
    pub fn push(&mut self, fact: &Fact) {
        let table = Table::of(fact);
        let waiting = &mut self.waiting[table as usize];
        if let Some(snapshot) = &mut waiting.snapshot {
            waiting.dirty |= snapshot.push(fact);
            self.counts[table as usize] = snapshot.len() as u64;
            return;
        }
        if waiting.columns.rows() >= MAX_WAITING {
            self.dropped += 1;
            return;
        }
        waiting.columns.push(fact);
        waiting.dirty = true;
        self.counts[table as usize] += 1;
        let rows = waiting.columns.rows();
        if rows >= BATCH && rows.is_multiple_of(RETRY) {
            self.offer(table);
        }
    }

    /// Hands over what has waited long enough. To be called several times a second.
    ///
    /// # Errors
    /// If the disk refused something earlier. What is pushed from then on is lost: end the recording.
    pub fn tick(&mut self, now: Instant) -> Result<(), StoreError> {
        for table in Table::ALL {
            let waiting = &mut self.waiting[table as usize];
            if waiting.dirty && now.saturating_duration_since(*waiting.since.get_or_insert(self.last_tick)) >= MAX_AGE {
                self.offer(table);
            }
        }
        self.offer_manifest();
        self.last_tick = now;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The manifest as it is now.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Changes the manifest; it is on disk soon after the next [`Self::tick`]. That a trace is complete is for
    /// [`Self::finish`] to say.
    pub fn update_manifest(&mut self, update: impl FnOnce(&mut Manifest)) {
        update(&mut self.manifest);
        self.manifest.complete = false;
        self.manifest_changed = true;
    }

    /// Rows that were dropped so far because the disk did not keep up.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes all that waits, merges small parts, and writes the manifest after `update`, which says how the
    /// recording ended and whether it is `complete`. Counts of rows are filled in here.
    ///
    /// # Errors
    /// If the disk refuses, or refused something earlier; the trace then stays incomplete.
    pub fn finish(mut self, update: impl FnOnce(&mut Manifest)) -> Result<Written, StoreError> {
        self.failure.take().map_or(Ok(()), Err)?;
        update(&mut self.manifest);
        if self.dropped > 0 {
            self.report_dropped();
        }
        for table in Table::ALL {
            if let Some(job) = self.waiting[table as usize].take() {
                self.sink.send(job)?;
            }
        }
        self.sink.finish()?;
        let tables = Table::ALL.into_iter();
        tables
            .clone()
            .try_for_each(|table| compact(&self.dir.join(table.name()), table))?;
        let rows: Vec<_> = tables.zip(self.counts).collect();
        self.manifest.counts = rows
            .iter()
            .map(|&(table, rows)| (table.name().to_owned(), rows))
            .collect();
        self.manifest.write(&self.dir)?;
        let bytes = folder::size(&self.dir)?;
        Ok(Written {
            dir: self.dir,
            rows,
            dropped: self.dropped,
            bytes,
        })
    }

    /// Says in the trace itself that it misses rows.
    fn report_dropped(&mut self) {
        let dropped = self.dropped;
        let time_ns = self
            .manifest
            .ended
            .as_ref()
            .unwrap_or(&self.manifest.started)
            .monotonic_ns;
        self.push(&Fact::Loss(Loss {
            time_ns,
            source: LOSS_SOURCE.to_owned(),
            count: dropped,
        }));
        *self.manifest.losses.entry(LOSS_SOURCE.to_owned()).or_default() += dropped;
    }

    /// Hands over what waits of a table, if the thread has room for it.
    fn offer(&mut self, table: Table) {
        for columns in self.sink.written() {
            self.waiting[columns.table() as usize].keep(columns);
        }
        let waiting = &mut self.waiting[table as usize];
        let Some(job) = waiting.take() else { return };
        match self.sink.offer(job) {
            Ok(None) => {}
            Ok(Some(job)) => waiting.put_back(job),
            Err(error) => self.fail(error),
        }
    }

    fn offer_manifest(&mut self) {
        if self.manifest_changed {
            match self.sink.offer(Job::Manifest(Box::new(self.manifest.clone()))) {
                Ok(returned) => self.manifest_changed = returned.is_some(),
                Err(error) => self.fail(error),
            }
        }
    }

    /// Keeps the first error: later ones follow from it.
    fn fail(&mut self, error: StoreError) {
        self.failure.get_or_insert(error);
    }
}

impl Waiting {
    fn new(table: Table) -> Self {
        let snapshot = table.is_snapshot().then(|| Snapshot::new(table));
        Self {
            columns: Columns::new(table),
            spare: Vec::new(),
            snapshot,
            dirty: false,
            since: None,
        }
    }

    /// What there is to be handed over; it counts as such from here on.
    fn take(&mut self) -> Option<Job> {
        if !self.dirty {
            return None;
        }
        self.dirty = false;
        self.since = None;
        Some(match &self.snapshot {
            Some(snapshot) => Job::Replace(snapshot.columns()),
            None => {
                let fresh = self.spare.pop().unwrap_or_else(|| Columns::new(self.columns.table()));
                Job::Append(std::mem::replace(&mut self.columns, fresh))
            }
        })
    }

    /// Takes back what there was no room for. Nothing was pushed in between.
    fn put_back(&mut self, job: Job) {
        self.dirty = true;
        if let Job::Append(columns) = job {
            let fresh = std::mem::replace(&mut self.columns, columns);
            self.keep(fresh);
        }
    }

    /// Keeps a buffer to be used again, unless a stall of the disk made it large.
    fn keep(&mut self, mut columns: Columns) {
        if self.spare.len() < SPARE && columns.rows() <= 2 * BATCH {
            columns.clear();
            self.spare.push(columns);
        }
    }
}
