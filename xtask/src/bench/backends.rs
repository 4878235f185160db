//! The cost of a doorbell for the traced program, by backend.

use std::process::Command;

use anyhow::{Context, Result};

use super::workload::{before_dispatcher, burst, record};
use super::{Place, median};
use crate::simulated;

/// Rounds; in each, the workload runs alone and recorded.
const ROUNDS: usize = 7;
/// Dispatches of the workload, with a doorbell each: fewer than its ring has packets, so that it waits for no room.
const DISPATCHES: u32 = 16_000;

/// Returns the time that a recording by eBPF adds to a submission of one packet, ns.
pub fn by_ebpf(place: &Place<'_>) -> Result<f64> {
    added(place, "ebpf")
}

/// Returns the time that a recording by perf events adds to a submission of one packet, ns.
pub fn by_perf(place: &Place<'_>) -> Result<f64> {
    added(place, "perf")
}

/// Returns the time that a recording by ftrace adds to a submission of one packet, ns.
pub fn by_ftrace(place: &Place<'_>) -> Result<f64> {
    added(place, "ftrace")
}

fn added(place: &Place<'_>, backend: &str) -> Result<f64> {
    let (mut alone, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(submission_ns(
            place,
            simulated::dispatcher(place.project, &place.programs),
        )?);
        let tracer = record(place, &place.dir.join("bench.trace"), &["--backend", backend]);
        recorded.push(submission_ns(place, before_dispatcher(place, tracer))?);
    }
    Ok(median(recorded)? - median(alone)?)
}

/// Runs the workload, and returns the median time from the reservation of a packet to the return from its doorbell, ns.
fn submission_ns(place: &Place<'_>, command: Command) -> Result<f64> {
    let did = burst(place, command, DISPATCHES)?;
    did["submit_ns"]["p50"]
        .as_f64()
        .context("the workload printed no median")
}
