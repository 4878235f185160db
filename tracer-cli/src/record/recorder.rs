//! The sink that writes a trace, and counts what it ends with.

use std::{collections::BTreeMap, process::ExitStatus, time::Instant};

use anyhow::Context;
use tracer_capture::{inventory::Inventory, sys};
use tracer_core::{
    fact::{Fact, Loss},
    summary::{Report, Summary},
};
use tracer_store::{Manifest, TraceWriter, Written};

use super::{manifest, scheduler};
use crate::collect::Sink;

/// A recording that ended.
pub struct Outcome {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its counts.
    pub report: Report,
    /// What is on disk.
    pub written: Written,
}

/// A trace that is being written.
pub struct Recorder {
    writer: TraceWriter,
    /// What was watched will be known only at the end.
    summary: Summary,
    losses: BTreeMap<String, u64>,
}

impl Recorder {
    /// Writes there.
    pub fn new(writer: TraceWriter) -> Self {
        Self {
            writer,
            summary: Summary::new(Default::default()),
            losses: BTreeMap::new(),
        }
    }

    /// Closes the trace. `status`: the command's, if it ended.
    pub fn finish(self, inventory: &Inventory, status: Option<ExitStatus>) -> anyhow::Result<Outcome> {
        let Self {
            writer,
            mut summary,
            losses,
        } = self;
        let mut last = writer.manifest().clone();
        let calls = summary.driver_calls(inventory.has("driver"));
        let written = writer.finish(|manifest| {
            manifest::describe(manifest, inventory, &losses);
            manifest::end(manifest, status);
            scheduler::confirm(&mut manifest.devices, manifest.simulated.is_some(), &calls);
            last = manifest.clone();
        });
        let written = written.context("writing the trace")?;
        if written.dropped > 0 {
            let time_ns = sys::monotonic_ns();
            summary.add(&Fact::Loss(Loss {
                time_ns,
                source: "trace-writer".to_owned(),
                count: written.dropped,
            }));
        }
        let mut report = summary
            .with_capabilities(manifest::capabilities(inventory))
            .finish(true);
        report.complete = last.complete;
        Ok(Outcome {
            manifest: last,
            report,
            written,
        })
    }
}

impl Sink for Recorder {
    fn take(&mut self, fact: &Fact) {
        if let Fact::Loss(loss) = fact {
            *self.losses.entry(loss.source.clone()).or_default() += loss.count;
        }
        self.summary.add(fact);
        self.writer.push(fact);
    }

    fn snapshot(&mut self, fact: &Fact) {
        self.writer.push(fact);
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        Ok(self.writer.tick(Instant::now())?)
    }

    fn describe(&mut self, inventory: &Inventory) {
        let before = self.writer.manifest().clone();
        let mut now = before.clone();
        manifest::describe(&mut now, inventory, &self.losses);
        if now != before {
            self.writer.update_manifest(|manifest| *manifest = now);
        }
    }
}
