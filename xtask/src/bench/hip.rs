//! The cost of recording for a program that uses HIP: its launches, and the room on disk.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::burst::Beside;
use super::workload::{all_attached, record, with_hip};
use super::{Place, median, rate, recording};
use crate::cmd;

/// Rounds. In each the workload runs once in each way, and the smallest median counts.
const ROUNDS: usize = 9;
/// Launches of a run.
const LAUNCHES: u32 = 4_000;
/// Launches of the recording whose size counts.
const RECORDED: u32 = 100_000;

/// The median time of a launch in the fastest run, ns.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    alone: f64,
    /// With a program that does nothing, at the place of tracer's probe of doorbells.
    empty: f64,
    none: f64,
    stats: f64,
    hip: f64,
}

/// Returns the ratio of the time that `--api none` adds to a launch to the time that an empty program adds.
pub fn none_against_empty(place: &Place<'_>) -> Result<f64> {
    let launch = place.launch()?;
    Ok((launch.none - launch.alone) / (launch.empty - launch.alone))
}

/// Returns the time that `--api hip,stats` adds to a launch beyond `--api none`, ns.
pub fn stats_ns(place: &Place<'_>) -> Result<f64> {
    place.launch().map(|launch| launch.stats - launch.none)
}

/// Returns the time that `--api hip` adds to a launch beyond `--api none`, ns.
pub fn hip_ns(place: &Place<'_>) -> Result<f64> {
    place.launch().map(|launch| launch.hip - launch.none)
}

/// Runs all rounds.
pub fn measure(place: &Place<'_>) -> Result<Launch> {
    let (library, offset) = place.doorbell_site(&with_hip::root(place))?;
    let least = f64::INFINITY;
    let mut launch = Launch {
        alone: least,
        empty: least,
        none: least,
        stats: least,
        hip: least,
    };
    for _ in 0..ROUNDS {
        launch.alone = launch.alone.min(median_ns(place, with_hip::alone(place))?);
        let beside = Beside::empty_program(place, &library, offset)?;
        let empty = median_ns(place, with_hip::alone(place));
        beside.end()?;
        launch.empty = launch.empty.min(empty?);
        for (least, api) in [
            (&mut launch.none, "none"),
            (&mut launch.stats, "hip,stats"),
            (&mut launch.hip, "hip"),
        ] {
            let tracer = record(place, &place.dir.join("hip.trace"), &["--api", api]);
            *least = least.min(median_ns(place, with_hip::after(place, tracer))?);
        }
    }
    eprintln!("    ns per launch: {launch:?}");
    all_attached(
        launch.alone,
        [("the empty program", launch.empty), ("record", launch.none)],
    )?;
    Ok(launch)
}

/// Runs the workload, and returns the median time of a launch by the program's own log, ns.
fn median_ns(place: &Place<'_>, mut command: Command) -> Result<f64> {
    #[derive(Deserialize)]
    struct Call {
        start_ns: u64,
        end_ns: u64,
        kernel: Option<String>,
    }
    let log = place.dir.join("calls.jsonl");
    cmd::run(
        command
            .arg("--log")
            .arg(&log)
            .args(["compute-only", "--pipelined", "--elements", "1", "-n"])
            .arg(LAUNCHES.to_string()),
    )?;
    let text = fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let mut times = Vec::new();
    for line in text.lines() {
        let call: Call = serde_json::from_str(line).with_context(|| format!("not a call: {line}"))?;
        if call.kernel.is_some() {
            times.push((call.end_ns - call.start_ns) as f64);
        }
    }
    median(times)
}

/// Returns the size of a trace with HIP's calls, bytes per dispatch.
pub fn bytes_per_dispatch(place: &Place<'_>) -> Result<f64> {
    let trace = place.dir.join("hip.trace");
    let mut command = with_hip::after(place, record(place, &trace, &["--api", "hip"]));
    command.args(["compute-only", "--pipelined", "--elements", "1", "-n"]);
    cmd::run(command.arg(RECORDED.to_string()))?;
    // Rows that are missing would make the trace smaller.
    let (rows, lost) = (rate::dispatches(place, &trace)?, rate::losses(&trace)?);
    ensure!(
        rows >= u64::from(RECORDED) && lost == 0,
        "{rows} of {RECORDED} dispatches have a row, {lost} events were lost"
    );
    Ok(recording::folder_bytes(&trace)? as f64 / f64::from(RECORDED))
}
