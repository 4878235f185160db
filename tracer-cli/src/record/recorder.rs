//! The sink that writes a trace and counts its totals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::Context;
use tracer_capture::{inventory::Inventory, sys};
use tracer_core::family::Family;
use tracer_core::{
    event::Event,
    summary::{Report, Summary},
    tables::{Fact, Loss},
};
use tracer_store::{StoreError, TraceWriter, Written};

use super::{manifest, probed::Probed, scheduler};
use crate::{collect::Sink, event_log::live::LiveLog, target::Ending};

/// Maximum number of traced processes whose ids are kept.
const MAX_PROCESSES: usize = 1 << 16;

/// Maximum number of queues and processes whose rows stay in memory for the end. The counts include all of them.
const MAX_ROWS: usize = 1024;

/// The result of a recording.
pub struct Outcome {
    /// The counts.
    pub report: Report,
    /// The files on disk.
    pub written: Written,
    /// Whether a process created a compute queue for which no doorbell probe was attached.
    pub blind: bool,
    /// Whether no traced process used the KFD.
    pub idle: bool,
}

/// What happens to a recording when the disk refuses rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The recording continues, and the user gets a message at once: the command's exit is still to be recorded, and the disk may
    /// have room again.
    GoOn,
    /// The recording ends.
    End,
}

/// A trace that is being written.
pub struct Recorder {
    writer: TraceWriter,
    on_failure: OnFailure,
    /// Built without capabilities: what was watched is known only at the end.
    summary: Summary,
    losses: BTreeMap<String, u64>,
    probed: Probed,
    /// Traced processes that have exited.
    processes: BTreeSet<u32>,
    /// Whether a traced process used the KFD.
    used: bool,
    log: Option<LiveLog>,
}

impl Recorder {
    /// Creates a recorder that writes to `writer`.
    pub fn new(writer: TraceWriter, on_failure: OnFailure) -> Self {
        Self {
            writer,
            on_failure,
            summary: Summary::new(Default::default()).keeping(MAX_ROWS),
            losses: BTreeMap::new(),
            probed: Probed::default(),
            processes: BTreeSet::new(),
            used: false,
            log: None,
        }
    }

    /// Also passes each row to a log.
    pub fn with_log(self, log: Option<LiveLog>) -> Self {
        Self { log, ..self }
    }

    /// Removes the trace.
    pub fn discard(self) -> anyhow::Result<()> {
        Ok(self.writer.discard()?)
    }

    /// Returns the traced processes if none of them used the KFD. The set is complete once the collector has finished.
    pub fn idle_processes(&self) -> Option<&BTreeSet<u32>> {
        (!self.used).then_some(&self.processes)
    }

    /// Closes the trace.
    pub fn finish(self, inventory: &Inventory, ending: &Ending) -> anyhow::Result<Outcome> {
        self.log.into_iter().for_each(LiveLog::finish);
        let mut summary = self.summary;
        let calls = summary.driver_calls(inventory.has(Family::Driver));
        let written = self.writer.finish(|manifest| {
            manifest::describe(manifest, inventory, &self.losses);
            manifest::end(manifest, ending);
            scheduler::confirm(&mut manifest.devices, manifest.simulated.is_some(), &calls);
        });
        let written = written.context("writing the trace")?;
        summary.set_aggregated(written.aggregated);
        if written.dropped > 0 {
            summary.add(&Fact::Loss(Loss {
                time_ns: sys::monotonic_ns(),
                source: "store".to_owned(),
                count: written.dropped,
            }));
        }
        let report = summary
            .with_capabilities(manifest::capabilities(inventory))
            .finish(written.manifest.complete);
        Ok(Outcome {
            idle: !self.used,
            blind: self.probed.lacks(report.queues.iter(), inventory),
            report,
            written,
        })
    }
}

impl Sink for Recorder {
    fn saw(&mut self, event: &Event<'_>) {
        self.probed.saw(event);
    }

    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Process(process) if self.processes.len() < MAX_PROCESSES => {
                self.processes.insert(process.pid);
            }
            Fact::Ioctl(ioctl) => self.used |= ioctl.device == "kfd",
            Fact::Queue(_) => self.used = true,
            Fact::Loss(loss) => *self.losses.entry(loss.source.clone()).or_default() += loss.count,
            _ => {}
        }
        if let Some(log) = &mut self.log {
            log.add(fact);
        }
        self.summary.add(fact);
        self.writer.push_last(fact);
    }

    fn snapshot(&mut self, fact: &Fact) {
        self.writer.push(fact);
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        match self.writer.tick(Instant::now()) {
            // Without the thread that writes, nothing more can be written.
            Err(error) if self.on_failure == OnFailure::GoOn && !matches!(error, StoreError::WriterGone(_)) => {
                log::error!("{error}; the recording continues, and tracer counts rows that it cannot write as lost");
                Ok(())
            }
            ticked => Ok(ticked?),
        }
    }

    fn describe(&mut self, inventory: &Inventory) {
        let mut now = self.writer.manifest().clone();
        manifest::describe(&mut now, inventory, &self.losses);
        if now != *self.writer.manifest() {
            self.writer.update_manifest(|manifest| *manifest = now);
        }
    }
}
