//! Writes rows into a trace as fast as the writer takes them, and prints how many per second reached the disk.
//!
//! `writer-rate DISPATCHES FOLDER` prints one line, `rows=A written_ns=B dropped=C`. Each dispatch is two rows, its own and its
//! doorbell's, as if a program rang one of four queues once per packet.

use std::{path::Path, process::ExitCode, time::Instant};

use tracer_core::{sample, tables::Fact};
use tracer_store::{
    Manifest, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

/// Rows between two ticks of the writer: 20 ms at a million a second.
const TICK: u64 = 20_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dispatches, folder] = words.as_slice() else {
        eprintln!("usage: writer-rate DISPATCHES FOLDER");
        return ExitCode::from(2);
    };
    let Ok(dispatches) = dispatches.parse() else {
        eprintln!("writer-rate: {dispatches} is no number");
        return ExitCode::from(2);
    };
    match run(dispatches, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("writer-rate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(dispatches: u64, folder: &Path) -> Result<(), tracer_store::StoreError> {
    let tool = Tool {
        name: "writer-rate".to_owned(),
        version: "0".to_owned(),
    };
    let target = Target::Command {
        argv: vec!["writer-rate".to_owned()],
    };
    let manifest = Manifest::new(tool, Host::here(), target, ClockSnapshot::now());
    let mut writer = TraceWriter::create(folder, manifest, false)?;
    let began = Instant::now();
    for index in 0..dispatches {
        let time_ns = 1_000_000_000 + index * 1000 + index * index % 307;
        let mut dispatch = sample::dispatch(index / 4, time_ns);
        dispatch.queue = (index % 4) as u32;
        dispatch.kernel_object = 0x7f12_3400_0000 + index % 16 * 0x40;
        dispatch.kernarg = 0x7f12_5600_0000 + index % 1024 * 0x100;
        let mut doorbell = sample::doorbell(index / 4, time_ns);
        doorbell.queue = Some(dispatch.queue);
        writer.push(&Fact::Dispatch(dispatch));
        writer.push(&Fact::Doorbell(doorbell));
        if index % TICK == 0 {
            writer.tick(Instant::now())?;
        }
    }
    let written = writer.finish(|manifest| manifest.complete = true)?;
    let elapsed = began.elapsed();
    let rows: u64 = written.rows.iter().map(|(_, rows)| rows).sum();
    println!(
        "rows={rows} written_ns={} dropped={}",
        elapsed.as_nanos(),
        written.dropped
    );
    Ok(())
}
