//! The report for programs. Names and meaning are stable; `null` means unknown.

use std::io::{self, Write};

use serde::Serialize;
use tracer_core::{analysis::Answers, known::Total, summary, words::Named};
use tracer_store::{
    Damage, Trace,
    manifest::{Device, EndedBy, Exit, Library, Probe, Target},
};

use super::selection::Selection;
use crate::say;

/// The report: the counts, and the trace that they come from.
#[derive(Serialize)]
struct Report<'a> {
    trace: String,
    format_version: u64,
    target: &'a Target,
    exit: Option<Exit>,
    ended_by: Option<&'a EndedBy>,
    simulated: Option<&'a str>,
    devices: &'a [Device],
    libraries: &'a [Library],
    probes: &'a [Probe],
    capabilities: &'a [String],
    warnings: &'a [String],
    /// What cannot be read.
    damage: Vec<Damaged<'a>>,
    /// Totals that are unknown because of it.
    unknown: Vec<&'static str>,
    #[serde(flatten)]
    counts: &'a summary::Report,
    /// The part of the recording that `answers` counts; null: the whole. Everything else is of the whole recording.
    part: Option<&'a Selection>,
    /// Rows by kernel, function, layer and queue, and findings.
    answers: &'a Answers,
}

/// A part that cannot be read.
#[derive(Serialize)]
struct Damaged<'a> {
    table: &'static str,
    part: String,
    reason: &'a str,
}

/// Writes the report, with a newline at the end.
pub fn write(
    out: &mut impl Write,
    trace: &Trace,
    counts: &summary::Report,
    answers: &Answers,
    part: Option<&Selection>,
    warnings: &[String],
    damage: &[Damage],
) -> io::Result<()> {
    let manifest = trace.manifest();
    let report = Report {
        trace: trace.dir().display().to_string(),
        format_version: manifest.format_version(),
        target: &manifest.target,
        exit: manifest.exit,
        ended_by: manifest.ended_by.as_ref(),
        simulated: manifest.simulated.as_deref(),
        devices: &manifest.devices,
        libraries: &manifest.libraries,
        probes: &manifest.probes,
        capabilities: &manifest.capabilities,
        warnings,
        damage: damage
            .iter()
            .map(|damage| Damaged {
                table: damage.table.name(),
                part: damage.part.display().to_string(),
                reason: &damage.reason,
            })
            .collect(),
        unknown: Total::hidden_by(&damage.iter().map(|damage| damage.table).collect())
            .map(Named::name)
            .collect(),
        counts,
        part,
        answers,
    };
    out.write_all(say::json(&report)?.as_bytes())
}
