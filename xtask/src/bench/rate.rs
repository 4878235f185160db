//! The highest rate that a recording keeps up with.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::workload::{queried, record};
use super::{Place, process};
use crate::{cmd, simulated};

/// Dispatches of each of the two programs, with a doorbell each: at a million per second they last for longer than a minute.
const DISPATCHES: u64 = 32_000_000;
const PROGRAMS: u64 = 2;
/// The shortest time of a run that counts, s.
const LEAST: f64 = 60.0;

/// Returns the dispatches per second that get a row each, while two programs ring as fast as they can, from the start of the
/// recorder to its end. Dispatches that are combined in runs do not count. Fails if an event was lost, or if the run was too short.
pub fn with_rows(place: &Place<'_>) -> Result<f64> {
    let trace = place.dir.join("rate.trace");
    let program = simulated::dispatcher(place.project, &place.programs);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words: Vec<String> = words.map(|word| cmd::shell_quote(&word.to_string_lossy())).collect();
    let one = format!("{} burst -n {DISPATCHES}", words.join(" "));
    let mut command = record(place, &trace, &[]);
    command.args(["sh", "-c", &format!("{one} & {one} && wait $!")]);
    let (need, _) = process::run(&mut command)?;
    let total = DISPATCHES * PROGRAMS;
    let rows = dispatches(place, &trace)?;
    let lost = losses(&trace)?;
    eprintln!("    {total} dispatches, {rows} rows, {lost} lost, {need:?}");
    ensure!(lost == 0, "{lost} events were lost");
    ensure!(
        need.seconds >= LEAST,
        "the run took {:.1} s, and {LEAST} are due",
        need.seconds
    );
    Ok(rows as f64 / need.seconds)
}

/// Returns the number of dispatches that have a row.
pub fn dispatches(place: &Place<'_>, trace: &Path) -> Result<u64> {
    queried(place, trace, "select count(*) as n from dispatches")
}

/// Returns the number of events that the trace counts as lost, of every kind.
pub fn losses(trace: &Path) -> Result<u64> {
    let manifest = fs::read(trace.join("manifest.json")).context("no manifest")?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest)?;
    let losses = manifest["losses"].as_object().context("a manifest without losses")?;
    Ok(losses.values().filter_map(serde_json::Value::as_u64).sum())
}
