//! The verdict for programs: docs/verdict.schema.json, and the subject of the verdict.

use serde::Serialize;
use tracer_core::{foreign::Json, verify::Verdict};

#[derive(Serialize)]
struct Document<'a> {
    /// The trace, or the command line.
    subject: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// Formats the verdict as one JSON document.
pub fn write(subject: &str, verdict: &Verdict) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(&Document { subject, verdict })?;
    Ok(format!("{}\n", Json(&text)))
}
