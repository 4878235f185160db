//! The verdict for programs: docs/verdict.schema.json, and the subject of the verdict.

use serde::Serialize;
use tracer_core::verify::Verdict;

use crate::say;

#[derive(Serialize)]
struct Document<'a> {
    /// The trace, or the command line.
    subject: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// Formats the verdict as one JSON document.
pub fn write(subject: &str, verdict: &Verdict) -> anyhow::Result<String> {
    Ok(say::json(&Document { subject, verdict })?)
}
