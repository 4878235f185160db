//! A trace as the figures that are compared.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context;
use tracer_common::api::{Layer, class_of};
use tracer_core::{
    analysis::Analysis,
    diff::{About, Recording, Run},
    family::Family,
    summary::Summary,
    tables::Table,
};
use tracer_store::{
    Trace,
    manifest::{Exit, Manifest, Target},
};

use crate::{record::manifest, report::text::wall_ns};

/// Reads a trace. What cannot be read is unknown, with a warning.
pub fn run(path: &Path) -> anyhow::Result<Run> {
    let name = path.display().to_string();
    let trace = Trace::open(path)?;
    let about = trace.manifest();
    let watched = manifest::parse(&about.capabilities);
    let mut summary = Summary::new(watched);
    let mut analysis = Analysis::default();
    let mut facts = trace.facts(&Table::ALL)?.skip_damaged();
    while let Some(fact) = facts.next_row() {
        let fact = fact.with_context(|| format!("reading {name}"))?;
        summary.add(fact);
        analysis.add(fact);
    }
    let damaged = facts.damaged().iter().map(ToString::to_string);
    for warning in about.warnings.iter().cloned().chain(damaged) {
        log::warn!("{name}: {warning}");
    }
    let unread: BTreeSet<Table> = facts.damaged().iter().map(|damage| damage.table).collect();
    summary.set_unread(unread.clone());
    let report = summary.finish(about.complete);
    let answers = analysis.finish();
    Ok(Run::of(Recording {
        about: About {
            trace: name,
            target: target(&about.target),
            ended: about.exit.map(ended),
            whole_run: matches!(about.target, Target::Command { .. }) && about.exit.is_some(),
            host: about.host.name.clone(),
            kernel: about.host.kernel_release.clone(),
            gpus: about.devices.iter().map(|gpu| gpu.name.clone()).collect(),
            simulated: about.simulated.clone(),
            complete: report.complete,
            damaged: unread.iter().map(|table| table.name().to_owned()).collect(),
            losses: report.losses.total,
            wall_ns: wall_ns(about),
        },
        report: &report,
        answers: &answers,
        finished: about.complete,
        watched,
        layers: layers(about),
        gpus: about.devices.iter().map(|gpu| gpu.gpu_id).collect(),
        unread: &unread,
    }))
}

fn target(target: &Target) -> String {
    match target {
        Target::Command { argv } => argv.join(" "),
        Target::Attached { pids } => format!("processes {pids:?}"),
        Target::System => "every process".to_owned(),
        Target::Imported { from } => format!("imported from {from}"),
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    }
}

/// Returns the libraries with probes on their functions.
fn layers(manifest: &Manifest) -> BTreeSet<String> {
    let probes = manifest.probes.iter();
    let attached = probes.filter(|probe| probe.family == Family::Api && probe.attached);
    let layer = |symbol: &str| {
        let mut all = Layer::ALL.into_iter().map(Layer::name);
        all.find(|layer| class_of(layer, symbol).is_some())
    };
    attached
        .filter_map(|probe| layer(&probe.symbol))
        .map(str::to_owned)
        .collect()
}
