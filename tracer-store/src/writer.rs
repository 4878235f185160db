//! Recording: takes facts and writes parts.

use std::path::Path;
use std::time::{Duration, Instant};

use tracer_core::runs::Runs;
use tracer_core::tables::{Fact, Loss, Table};

use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::sink::worker::LOSS_SOURCE;
use crate::sink::{Job, Placing, Report, Sink, SizeGauge, Written};
use crate::waiting::{BATCH, Waiting};

/// Age at which rows are handed to the writer thread. Together with the time between ticks and the time of a write, it stays below
/// the second that a killed recorder may lose.
const MAX_AGE: Duration = Duration::from_millis(400);

/// Bytes of a full batch, because names can be long.
const BATCH_BYTES: usize = 32 << 20;

/// Bytes that rows of other tables may take beyond [`Placing::row_memory`]. Beyond `row_memory`, dispatches and doorbells are
/// aggregated. Beyond this, later rows are dropped, and counted.
const OTHERS: usize = 32 << 20;

/// Bytes that rows of all tables and runs together may take beyond [`Placing::row_memory`]. Later runs are dropped, and the things
/// that they represent are counted.
const RUNS: usize = 64 << 20;

/// Interval of the counts of a table's bytes, in rows.
const RETRY: usize = BATCH / 16;

/// Bytes of names after which a table's bytes are counted immediately.
const MAX_TEXT: usize = 1 << 20;

/// Writes a trace.
///
/// [`Self::push`] only appends to buffers in memory. A thread does encoding, compression and disk access. Dropping a writer without
/// [`Self::finish`] leaves the same as a killed recorder: a readable, incomplete trace.
pub struct TraceWriter {
    manifest: Manifest,
    manifest_changed: bool,
    /// Rows not handed over yet, by table.
    waiting: Vec<Waiting>,
    last_tick: Instant,
    sink: Sink,
    /// See [`Placing::row_memory`].
    row_memory: usize,
    /// Whether dispatches and doorbells become runs.
    aggregating: bool,
    runs: Runs,
    /// Runs that have just ended.
    ended: Vec<Fact>,
    /// Rows that found no room in memory; for runs, the things that they represent.
    dropped: u64,
    /// Rows that could not be written; for runs, the things that they represent.
    lost: u64,
    /// The failure that [`Self::tick`] must report.
    failure: Option<StoreError>,
    /// Whether the disk refused the last rows.
    failing: bool,
}

impl TraceWriter {
    /// Begins a trace at `dir`, which is created; an empty folder is also accepted. An existing trace is replaced only if
    /// `overwrite` is set, and anything else never. The manifest is on disk immediately, as that of an incomplete trace.
    ///
    /// # Errors
    /// If `dir` exists and may not be used, or the folder cannot be written.
    pub fn create(dir: &Path, manifest: Manifest, overwrite: bool) -> Result<Self, StoreError> {
        let placing = Placing {
            overwrite,
            ..Placing::default()
        };
        Self::create_as(dir, manifest, placing)
    }

    /// Begins a trace with the rights of a user, and other permissions than private ones.
    ///
    /// The writer thread has these rights and no others, whatever rights the process has. It resolves `dir` once. Later changes to
    /// the path or in the folder by others lead it to no other place.
    ///
    /// # Errors
    /// Those of [`Self::create`]; if the user may not create a folder there, or the existing folder belongs to another user.
    pub fn create_as(dir: &Path, mut manifest: Manifest, placing: Placing) -> Result<Self, StoreError> {
        manifest.complete = false;
        let row_memory = placing.row_memory;
        Ok(Self {
            sink: Sink::start(dir, manifest.clone(), placing)?,
            row_memory,
            aggregating: row_memory == 0,
            runs: Runs::new(),
            ended: Vec::new(),
            manifest,
            manifest_changed: false,
            waiting: Table::ALL.into_iter().map(Waiting::new).collect(),
            last_tick: Instant::now(),
            dropped: 0,
            lost: 0,
            failure: None,
            failing: false,
        })
    }

    /// Returns the gauge of the trace's size on disk.
    #[must_use]
    pub fn size_gauge(&self) -> SizeGauge {
        self.sink.size_gauge()
    }

    /// Adds a row to its table, or adds its contents to a run while the disk does not keep up. Never waits for the disk.
    ///
    /// Queues and processes may be pushed with their present state, while they live: the last pushed row of each one counts.
    pub fn push(&mut self, fact: &Fact) {
        let ended = &mut self.ended;
        if self.aggregating && self.runs.add(fact, &mut |run| ended.push(run)) {
            self.append_ended();
        } else {
            self.append(fact);
        }
    }

    /// Adds a row like [`Self::push`]. If it is a row of a thing that continues to live, the thing has ended, and no other row of
    /// it follows. Its memory is free after it is written.
    pub fn push_last(&mut self, fact: &Fact) {
        let waiting = &mut self.waiting[Table::of(fact) as usize];
        match &mut waiting.changes {
            Some(changes) => {
                changes.push_last(fact);
                waiting.dirty = true;
            }
            None => self.push(fact),
        }
    }

    /// Returns the bytes that were handed over and are not on disk yet. A program that makes rows, and does not record them, can
    /// wait for these, so that no row is aggregated or dropped.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.sink.pending()
    }

    /// Returns whether dispatches and doorbells are aggregated now.
    #[must_use]
    pub const fn is_aggregating(&self) -> bool {
        self.aggregating
    }

    /// Ends all open runs.
    fn end_runs(&mut self) {
        let ended = &mut self.ended;
        self.runs.flush(&mut |run| ended.push(run));
        self.append_ended();
    }

    fn append_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.drain(..).for_each(|run| self.append(&run));
        self.ended = ended;
    }

    fn append(&mut self, fact: &Fact) {
        let table = Table::of(fact);
        let waiting = &mut self.waiting[table as usize];
        if let Some(changes) = &mut waiting.changes {
            waiting.dirty |= changes.push(fact);
            return;
        }
        if waiting.full {
            self.dropped = self.dropped.saturating_add(things(fact));
            return;
        }
        waiting.columns.push(fact);
        waiting.dirty = true;
        let rows = waiting.columns.rows();
        // Names can be long: a few rows with them take as much as thousands without.
        waiting.text += text(fact);
        if rows.is_multiple_of(RETRY) || waiting.text >= MAX_TEXT {
            waiting.text = 0;
            waiting.bytes = waiting.columns.bytes();
            if rows >= BATCH || waiting.bytes >= BATCH_BYTES {
                self.hand_over(table);
            }
            self.bound();
        }
    }

    /// Lets tables take rows only while there is room for them. Losses always find room, because they are few.
    fn bound(&mut self) {
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        let used = waiting.saturating_add(self.sink.pending());
        self.aggregating = aggregates(self.aggregating, used, self.row_memory);
        for table in Table::ALL {
            let more = if table.is_of_runs() { RUNS } else { OTHERS };
            let full = used >= self.row_memory.saturating_add(more);
            self.waiting[table as usize].full = full && table != Table::Losses;
        }
    }

    /// Hands over rows that have waited long enough. To be called several times a second.
    ///
    /// # Errors
    /// If the disk refused something since the last tick, unless that was reported already and nothing was written since. The
    /// recording can continue: rows that could not be written are lost, and counted, and later ones are written if there is room by
    /// then.
    pub fn tick(&mut self, now: Instant) -> Result<(), StoreError> {
        for table in Table::ALL {
            let waiting = &mut self.waiting[table as usize];
            let due =
                waiting.dirty && now.saturating_duration_since(*waiting.since.get_or_insert(self.last_tick)) >= MAX_AGE;
            if due && self.sink.has_room() {
                self.hand_over(table);
            }
        }
        self.end_runs();
        self.offer_manifest();
        self.take_reports();
        self.bound();
        self.last_tick = now;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Returns the present manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Changes the manifest; it is on disk soon after the next [`Self::tick`]. Only [`Self::finish`] can mark a trace as complete.
    pub fn update_manifest(&mut self, update: impl FnOnce(&mut Manifest)) {
        update(&mut self.manifest);
        self.manifest.complete = false;
        self.manifest_changed = true;
    }

    /// Returns the rows that were dropped so far because the disk did not keep up, or could not be written; for runs, the things
    /// that they represent.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped.saturating_add(self.lost)
    }

    /// Writes all waiting rows, merges small parts, and writes the manifest after `update`, which sets how the recording ended and
    /// whether it is `complete`. Counts of rows are filled in here.
    ///
    /// A trace that lacks rows because the disk refused them is not complete, and a warning in its manifest says so.
    ///
    /// # Errors
    /// If the disk refuses the manifest. The trace then stays as that of a killed recorder.
    pub fn finish(mut self, update: impl FnOnce(&mut Manifest)) -> Result<Written, StoreError> {
        update(&mut self.manifest);
        self.end_runs();
        self.take_reports();
        self.report_dropped();
        for table in Table::ALL {
            if let Some(job) = self.waiting[table as usize].take() {
                self.sink.send(job)?;
            }
        }
        let mut written = self.sink.close(self.manifest)?;
        written.dropped = written.dropped.saturating_add(self.dropped);
        Ok(written)
    }

    /// Removes everything that was written, because an empty trace would block the next attempt.
    ///
    /// # Errors
    /// If the disk refuses, or refused something earlier.
    pub fn discard(self) -> Result<(), StoreError> {
        self.sink.discard()
    }

    /// Notes in the trace itself that it misses rows.
    fn report_dropped(&mut self) {
        if self.dropped() == 0 {
            return;
        }
        let end = self.manifest.ended.as_ref().unwrap_or(&self.manifest.started);
        let loss = Loss {
            time_ns: end.monotonic_ns,
            source: LOSS_SOURCE.to_owned(),
            count: self.dropped(),
        };
        self.push(&Fact::Loss(loss));
        // The thread adds the rows that could not be written.
        *self.manifest.losses.entry(LOSS_SOURCE.to_owned()).or_default() += self.dropped;
    }

    /// Hands over the waiting rows of a table, however many jobs wait already, because a full batch must not grow.
    fn hand_over(&mut self, table: Table) {
        self.take_reports();
        if let Some(job) = self.waiting[table as usize].take()
            && let Err(error) = self.sink.send(job)
        {
            self.fail(error);
        }
    }

    /// Takes buffers back, and notes the disk's failures.
    fn take_reports(&mut self) {
        let reports: Vec<Report> = self.sink.reports().collect();
        for report in reports {
            match report {
                Report::Written(columns) => {
                    self.failing = false;
                    self.waiting[columns.table() as usize].keep(columns);
                }
                Report::Failed { error, lost } => {
                    self.lost = self.lost.saturating_add(lost);
                    if !std::mem::replace(&mut self.failing, true) {
                        self.fail(error);
                    }
                }
            }
        }
    }

    fn offer_manifest(&mut self) {
        if self.manifest_changed && self.sink.has_room() {
            match self.sink.send(Job::Manifest(Box::new(self.manifest.clone()))) {
                Ok(()) => self.manifest_changed = false,
                Err(error) => self.fail(error),
            }
        }
    }

    /// Keeps the first error, because later ones follow from it.
    fn fail(&mut self, error: StoreError) {
        self.failure.get_or_insert(error);
    }
}

/// Returns whether rows are aggregated from now on: from the bound on, until half of it is free. So the state does not change with
/// every written batch.
const fn aggregates(before: bool, used: usize, bound: usize) -> bool {
    used >= bound || (before && used > bound / 2)
}

/// Returns the number of things that a row represents.
const fn things(fact: &Fact) -> u64 {
    match fact {
        Fact::DispatchRun(run) => run.count,
        Fact::DoorbellRun(run) => run.count,
        _ => 1,
    }
}

/// Returns the bytes of a row that its table's columns do not count.
fn text(fact: &Fact) -> usize {
    let text = match fact {
        Fact::Dispatch(row) => row.kernel.as_deref(),
        Fact::DispatchRun(row) => row.kernel.as_deref(),
        Fact::Request(row) => row.kernel.as_deref(),
        Fact::Kernel(row) => Some(&*row.name),
        Fact::Ioctl(row) => row.args.as_deref(),
        _ => None,
    };
    text.map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use super::aggregates;

    #[test]
    fn aggregation_begins_at_the_bound_and_ends_at_half_of_it() {
        let mut now = false;
        let mut at = |used| {
            now = aggregates(now, used, 100);
            now
        };
        let used = [0, 99, 100, 99, 51, 50, 99, 100, 0];
        assert_eq!(
            used.map(&mut at),
            [false, false, true, true, true, false, false, true, false]
        );
        assert!(aggregates(false, 0, 0) && aggregates(true, 0, 0));
    }
}
