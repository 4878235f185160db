//! The report for programs. Names and meaning are stable; `null` means unknown.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use tracer_core::{analysis::Answers, known::Total, summary, words::Named};
use tracer_store::{
    Damage, Trace,
    manifest::{Device, EndedBy, Exit, Library, Probe, Target},
};

use super::selection::Selection;
use crate::say;

/// The report of `tracer report --format json`: the counts, and the trace that they come from. `null` means unknown.
#[derive(Serialize, JsonSchema)]
struct Report<'a> {
    /// The trace's folder.
    trace: String,
    /// Version of the trace's format.
    format_version: u64,
    /// What was recorded.
    target: &'a Target,
    /// How the command ended; `null` if there was none, or if its end is not known.
    exit: Option<Exit>,
    /// What ended the recording.
    ended_by: Option<&'a EndedBy>,
    /// The evidence that the devices were simulated. `null` does not claim that the devices were real.
    simulated: Option<&'a str>,
    /// The GPUs.
    devices: &'a [Device],
    /// The libraries that had probes.
    libraries: &'a [Library],
    /// The probes.
    probes: &'a [Probe],
    /// What was watched.
    capabilities: &'a [String],
    /// Warnings of the recorder, and what cannot be read.
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
#[derive(Serialize, JsonSchema)]
struct Damaged<'a> {
    /// The table.
    table: &'static str,
    /// The file.
    part: String,
    /// Why it cannot be read.
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

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn the_schema_in_docs_is_that_of_reports() {
        let schema = schemars::schema_for!(Report<'static>);
        let expected = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
        crate::docs::is("report.schema.json", &expected, "run this test with UPDATE_DOCS=1");
    }
}
