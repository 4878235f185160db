//! `tracer doctor`: tells what `record` would capture here, what it would miss, and how to mend that.

mod system;
mod text;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde::Serialize;
use tracer_capture::inspect::{self, Inspection, Verdict};

use crate::cli::Doctor;

/// Not everything would be captured, or that could not be told.
const LACKING: u8 = 1;
/// Grows when a field of the JSON changes its meaning or goes; not when one is added.
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

/// Looks at the machine and tells.
pub fn run(options: &Doctor) -> ExitCode {
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
        // A reader that has seen enough is no failure to tell of.
        Ok(()) => ExitCode::from(LACKING),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(LACKING),
        Err(error) => {
            eprintln!("tracer: the findings can't be written: {error}");
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
    serde_json::to_writer_pretty(&mut *out, &json)?;
    writeln!(out)
}
