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
use tracer_core::foreign;

use crate::{cli::Doctor, say::say};

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
            eprintln!("tracer: {error}");
            return ExitCode::from(LACKING);
        }
    };
    let mut out = io::stdout().lock();
    let mut lines = recovered.iter().map(|left| {
        let (pid, recorder, outcome) = (left.pid, left.recorder, left.outcome);
        writeln!(out, "process {pid}, paused by tracer {recorder}, which died: {outcome}")
    });
    // A reader that closes the pipe early is not a failure.
    let _ = lines.try_for_each(|line| line);
    drop(lines);
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
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if options.json {
        json(&mut out, &inspection, &verdict)
    } else {
        text::write(&mut out, &inspection, &verdict)
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) if verdict.is_whole() => ExitCode::SUCCESS,
        // A reader that closes the pipe early is not a failure to report.
        Ok(()) => ExitCode::from(LACKING),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(LACKING),
        Err(error) => {
            say!("tracer: cannot write the result: {error}");
            ExitCode::from(LACKING)
        }
    }
}

fn json(out: &mut impl Write, inspection: &Inspection, verdict: &Verdict) -> io::Result<()> {
    let json = Json {
        format_version: FORMAT_VERSION,
        complete: verdict.is_whole(),
        record_would_capture: verdict,
        inspection,
    };
    writeln!(out, "{}", foreign::Json(&serde_json::to_string_pretty(&json)?))
}
