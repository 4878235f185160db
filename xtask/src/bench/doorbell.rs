//! The cost of the programs in a loop, as `tracer doctor` measures it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Place;

/// Runs of `doctor`. Of each number the smallest counts: other work only makes a program slower.
const RUNS: usize = 5;

/// What a program adds to a call, ns.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Cost {
    empty_ns: f64,
    doorbell_ns: f64,
    packet_ns: f64,
    reserve_ns: f64,
}

/// Returns the ratio of the time that the recording of a doorbell for one packet adds to the time that an empty program adds.
pub fn against_empty(place: &Place<'_>) -> Result<f64> {
    let cost = place.doorbell()?;
    Ok(cost.doorbell_ns / cost.empty_ns)
}

/// Returns the time that each further packet of a doorbell adds, ns.
pub fn packet_ns(place: &Place<'_>) -> Result<f64> {
    Ok(place.doorbell()?.packet_ns)
}

/// Runs `doctor` some times.
pub fn measure(place: &Place<'_>) -> Result<Cost> {
    let mut least: Option<Cost> = None;
    for _ in 0..RUNS {
        let cost = run(place)?;
        least = Some(least.map_or(cost, |least| Cost {
            empty_ns: least.empty_ns.min(cost.empty_ns),
            doorbell_ns: least.doorbell_ns.min(cost.doorbell_ns),
            packet_ns: least.packet_ns.min(cost.packet_ns),
            reserve_ns: least.reserve_ns.min(cost.reserve_ns),
        }));
    }
    eprintln!("    {least:?}");
    least.context("nothing was measured")
}

fn run(place: &Place<'_>) -> Result<Cost> {
    let output = Command::new(place.programs.join("tracer"))
        .args(["doctor", "--json"])
        .output();
    // Its exit code says that rings would not be captured here.
    let mut found: serde_json::Value = serde_json::from_slice(&output.context("cannot start tracer")?.stdout)?;
    let cost = found["doorbell_cost"].take();
    ensure!(cost["error"].is_null(), "doctor measured nothing: {}", cost["error"]);
    Ok(serde_json::from_value(cost)?)
}
