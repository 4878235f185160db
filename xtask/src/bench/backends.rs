//! The cost of a doorbell for the traced program, by backend.

use std::process::Command;

use anyhow::{Context, Result};

use super::{Place, median};
use crate::{cmd, simulated};

/// Rounds; in each, the workload runs alone and recorded.
const ROUNDS: usize = 7;
/// The workload: as many doorbells as possible, and fewer than its ring has packets, so that it waits for no room.
const BURST: [&str; 3] = ["burst", "-n", "16000"];

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
        let mut command = Command::new(place.programs.join("tracer"));
        command.args(["record", "--overwrite", "--as-root", "--backend", backend, "-o"]);
        command.arg(place.dir.join("bench.trace")).arg("--");
        let program = simulated::dispatcher(place.project, &place.programs);
        command.arg(program.get_program()).args(program.get_args());
        recorded.push(submission_ns(place, command)?);
    }
    Ok(median(recorded)? - median(alone)?)
}

/// Runs the workload, and returns the median time from the reservation of a packet to the return from its doorbell, ns.
fn submission_ns(place: &Place<'_>, mut command: Command) -> Result<f64> {
    let report = place.dir.join("did.json");
    cmd::run(command.arg("--json").arg(&report).args(BURST))?;
    let text = std::fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let did: serde_json::Value = serde_json::from_slice(&text)?;
    let median = did["submit_ns"]["p50"].as_f64();
    median.with_context(|| format!("no median in {}", report.display()))
}
