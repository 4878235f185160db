//! The report for programs. Names and meaning are stable; `null` means unknown.

use std::io::{self, Write};

use serde::Serialize;
use tracer_core::summary;
use tracer_store::{
    Trace,
    manifest::{Device, EndedBy, Exit, Library, Probe, Target},
};

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
    #[serde(flatten)]
    counts: &'a summary::Report,
}

/// Writes the report, with a newline at the end.
pub fn write(out: &mut impl Write, trace: &Trace, counts: &summary::Report, warnings: &[String]) -> io::Result<()> {
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
        counts,
    };
    out.write_all(say::json(&report)?.as_bytes())
}
