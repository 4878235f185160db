//! How long reports and queries of long recordings take, and how much memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::process::{Need, run_for};
use super::{Place, median};
use crate::cmd;

/// Rounds. The median counts.
const ROUNDS: usize = 3;
/// The dispatches of each kernel, and the times from reserve to doorbell.
const QUERY: &str = "select kernel, count(*) as n, min(time_ns) as first, max(time_ns) as last from dispatches \
                     group by kernel order by n desc";
pub fn report_seconds(place: &Place<'_>) -> Result<f64> {
    seconds(place, TEN, &report)
}

pub fn report_memory(place: &Place<'_>) -> Result<f64> {
    Ok(report(place, TEN)?.mib)
}

pub fn query_seconds(place: &Place<'_>) -> Result<f64> {
    seconds(place, TEN, &query)
}

pub fn query_memory(place: &Place<'_>) -> Result<f64> {
    Ok(query(place, TEN)?.mib)
}

pub fn long_report_seconds(place: &Place<'_>) -> Result<f64> {
    Ok(report(place, HUNDRED)?.seconds)
}

pub fn long_report_memory(place: &Place<'_>) -> Result<f64> {
    Ok(report(place, HUNDRED)?.mib)
}

pub fn long_query_seconds(place: &Place<'_>) -> Result<f64> {
    Ok(query(place, HUNDRED)?.seconds)
}

pub fn long_query_memory(place: &Place<'_>) -> Result<f64> {
    Ok(query(place, HUNDRED)?.mib)
}

/// Dispatches of the traces, each with a doorbell of its own.
const TEN: u64 = 10_000_000;
const HUNDRED: u64 = 100_000_000;

fn seconds(place: &Place<'_>, dispatches: u64, of: &dyn Fn(&Place<'_>, u64) -> Result<Need>) -> Result<f64> {
    let rounds = (0..ROUNDS).map(|_| Ok(of(place, dispatches)?.seconds));
    median(rounds.collect::<Result<_>>()?)
}

fn report(place: &Place<'_>, dispatches: u64) -> Result<Need> {
    let mut tracer = Command::new(place.programs.join("tracer"));
    tracer.args(["report", "--no-pager"]).arg(trace(place, dispatches)?);
    run_for(&mut tracer, &dispatches.to_string())
}

fn query(place: &Place<'_>, dispatches: u64) -> Result<Need> {
    let mut tracer = Command::new(place.programs.join("tracer"));
    tracer.arg("query").arg(trace(place, dispatches)?).arg(QUERY);
    // Four of ten dispatches are of the most frequent kernel.
    run_for(&mut tracer, &(dispatches / 10 * 4).to_string())
}

/// Returns the folder of an invented trace. It is made once, unless its generator was built again.
fn trace(place: &Place<'_>, dispatches: u64) -> Result<PathBuf> {
    let generator = place.programs.join("examples/hosts");
    let folder = place.project.target().join(format!("bench-{dispatches}"));
    let trace = folder.join("host-000.trace");
    let made = fs::metadata(trace.join("manifest.json")).and_then(|file| file.modified());
    let built = fs::metadata(&generator).and_then(|file| file.modified());
    let built = built.with_context(|| format!("no {}", generator.display()))?;
    if !made.is_ok_and(|made| made > built) {
        eprintln!("    making a trace of {dispatches} dispatches");
        cmd::remove_all(&folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        cmd::read(
            Command::new(generator)
                .arg(&folder)
                .args(["1", &dispatches.to_string()]),
        )?;
    }
    Ok(trace)
}
