//! `tracer doctor`: reports what `record` would capture on this machine, what it would miss, and how to fix that.

mod lines;
mod system;
mod text;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde::Serialize;
use tracer_capture::{
    inspect::{self, Inspection, Verdict},
    pause::left,
};

use crate::{
    cli::Doctor,
    say::{self, say},
};

/// Exit code if a recording would not capture everything, or if this could not be determined.
const LACKING: u8 = 1;
/// Version of the JSON format. It grows when a field changes its meaning or is removed, not when one is added.
const FORMAT_VERSION: u32 = 1;

/// The JSON form (docs/doctor.md).
#[derive(Serialize)]
struct Json<'a> {
    format_version: u32,
    complete: bool,
    record_would_capture: &'a Verdict,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

/// Resumes the processes that dead recorders left paused, and prints the outcome for each process.
fn resume() -> ExitCode {
    let recovered = match left::recover() {
        Ok(recovered) => recovered,
        Err(error) => {
            say!("tracer: {error}");
            return ExitCode::from(LACKING);
        }
    };
    // A reader that closes the pipe early is not a failure.
    let mut out = io::stdout().lock();
    for left in &recovered {
        let (pid, recorder, outcome) = (left.pid, left.recorder, left.outcome);
        let _ = writeln!(out, "process {pid}, paused by tracer {recorder}, which died: {outcome}");
    }
    if recovered.is_empty() {
        let _ = writeln!(out, "no process was left paused");
    }
    ExitCode::SUCCESS
}

/// Inspects the machine and prints the result.
pub fn run(options: &Doctor) -> ExitCode {
    if options.resume {
        return resume();
    }
    let inspection = inspect::inspect(&inspect::Options {
        libraries: options.library.clone(),
        debuginfod: options.debuginfod,
    });
    let verdict = inspection.verdict();
    let text = if options.json {
        say::json(&Json {
            format_version: FORMAT_VERSION,
            complete: verdict.is_whole(),
            record_would_capture: &verdict,
            inspection: &inspection,
        })
    } else {
        Ok(text::write(&inspection, &verdict))
    };
    let mut out = io::stdout().lock();
    let written = text.and_then(|text| out.write_all(text.as_bytes()));
    match written.and_then(|()| out.flush()) {
        Ok(()) if verdict.is_whole() => return ExitCode::SUCCESS,
        // A reader that closes the pipe early is not a failure to report.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => say!("tracer: cannot write the result: {error}"),
        _ => {}
    }
    ExitCode::from(LACKING)
}
