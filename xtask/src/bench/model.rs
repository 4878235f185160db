//! What recording costs a program of others: the rate of llama-bench on a small model.

use std::process::Command;

use anyhow::{Context, Result};

use super::workload::{record, starts};
use super::{Place, median};
use crate::{clients, cmd};

/// Pairs. The median of the ratios counts.
const PAIRS: usize = 9;
/// The tokens that one run generates, and how often it does.
const ARGUMENTS: [&str; 10] = ["-p", "0", "-n", "64", "-r", "3", "-ngl", "99", "-o", "json"];

/// The rates of recorded runs, as ratios to runs alone.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    recorded: f64,
    with_calls: f64,
}

/// Returns the ratio of the tokens per second under `record` to those alone.
pub fn recorded(place: &Place<'_>) -> Result<f64> {
    place.model().map(|speed| speed.recorded)
}

/// Returns the same under `record --api hip`.
pub fn with_calls(place: &Place<'_>) -> Result<f64> {
    place.model().map(|speed| speed.with_calls)
}

/// Runs all pairs.
pub fn measure(place: &Place<'_>) -> Result<Speed> {
    let (mut recorded, mut with_calls) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let alone = rate(&mut alone(place))?;
        let usual = rate(&mut under(place, "none"))?;
        let calls = rate(&mut under(place, "hip"))?;
        eprintln!("    {alone:.1} tokens/s alone, {usual:.1} recorded, {calls:.1} with calls");
        recorded.push(usual / alone);
        with_calls.push(calls / alone);
    }
    Ok(Speed {
        recorded: median(recorded)?,
        with_calls: median(with_calls)?,
    })
}

fn alone(place: &Place<'_>) -> Command {
    clients::llama(place.project, &place.programs, &ARGUMENTS)
}

fn under(place: &Place<'_>, api: &str) -> Command {
    let mut command = record(place, &place.dir.join("llama.trace"), &["--api", api]);
    starts(&mut command, &alone(place));
    command
}

/// Runs llama-bench, and returns the tokens per second that it printed.
fn rate(command: &mut Command) -> Result<f64> {
    let printed = cmd::read(command)?;
    // tracer's own lines are on standard error.
    let runs: serde_json::Value = serde_json::from_str(&printed).context("llama-bench printed no JSON")?;
    runs[0]["avg_ts"].as_f64().context("llama-bench printed no rate")
}
