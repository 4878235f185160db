//! What the recorder itself needs: processors, memory, room on disk, and time to start and end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::{self, Need};
use super::{Place, median};
use crate::{cmd, simulated};

/// Dispatches of the long recording, each with a doorbell.
const DISPATCHES: u32 = 1_000_000;
/// Rounds of short commands. The median counts.
const ROUNDS: usize = 9;
/// The time for which an idle recorder is watched.
const IDLE: Duration = Duration::from_secs(10);
/// The time after which a recorder is idle.
const STARTED: Duration = Duration::from_secs(3);

/// A recording of many dispatches.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    need: Need,
    bytes: f64,
}

/// Returns the time of processors that the recorder needs, s.
pub fn cpu_seconds(place: &Place<'_>) -> Result<f64> {
    Ok(place.recording()?.need.cpu_seconds)
}

/// Returns the peak of the recorder's memory, MiB.
pub fn memory(place: &Place<'_>) -> Result<f64> {
    Ok(place.recording()?.need.mib)
}

/// Returns the size of the trace, bytes per dispatch.
pub fn bytes_per_dispatch(place: &Place<'_>) -> Result<f64> {
    Ok(place.recording()?.bytes / f64::from(DISPATCHES))
}

/// Records a burst.
pub fn measure(place: &Place<'_>) -> Result<Recording> {
    let trace = place.dir.join("long.trace");
    let dispatches = DISPATCHES.to_string();
    let (need, _) = process::run(&mut record(place, &trace, &["burst", "-n", &dispatches]))?;
    let recording = Recording {
        need,
        bytes: folder_bytes(&trace)? as f64,
    };
    eprintln!("    {recording:?}");
    Ok(recording)
}

fn record(place: &Place<'_>, trace: &Path, workload: &[&str]) -> Command {
    let mut command = Command::new(place.programs.join("tracer"));
    command.args(["record", "--overwrite", "--as-root", "-o"]).arg(trace);
    let program = simulated::dispatcher(place.project, &place.programs);
    command.arg("--").arg(program.get_program()).args(program.get_args());
    command.args(workload);
    command
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}

/// Returns the time that `record` adds to a command that uses no GPU, ms.
pub fn added_to_nothing(place: &Place<'_>) -> Result<f64> {
    let mut added = Vec::new();
    for _ in 0..ROUNDS {
        let alone = seconds(&mut Command::new("/bin/true"))?;
        let mut tracer = Command::new(place.programs.join("tracer"));
        tracer.args(["record", "--overwrite", "--as-root", "-o"]);
        tracer.arg(place.dir.join("nothing.trace")).args(["--", "/bin/true"]);
        added.push((seconds(&mut tracer)? - alone) * 1e3);
    }
    median(added)
}

/// Returns the time of `tracer --version`, ms.
pub fn version(place: &Place<'_>) -> Result<f64> {
    let run = |_| Ok(seconds(Command::new(place.programs.join("tracer")).arg("--version"))? * 1e3);
    median((0..ROUNDS).map(run).collect::<Result<_>>()?)
}

/// Returns the time of a report of 1,000 dispatches, ms.
pub fn small_report(place: &Place<'_>) -> Result<f64> {
    let trace = place.dir.join("small.trace");
    cmd::run(&mut record(place, &trace, &["burst", "-n", "1000"]))?;
    let run = |_| {
        let mut tracer = Command::new(place.programs.join("tracer"));
        Ok(seconds(tracer.args(["report", "--no-pager"]).arg(&trace))? * 1e3)
    };
    median((0..ROUNDS).map(run).collect::<Result<_>>()?)
}

/// Runs a command and returns its time. Its exit code may say that it has seen no dispatch.
fn seconds(command: &mut Command) -> Result<f64> {
    let began = std::time::Instant::now();
    let output = command.stdin(Stdio::null()).output();
    output.with_context(|| format!("cannot start {command:?}"))?;
    Ok(began.elapsed().as_secs_f64())
}

/// Returns the share of a processor that the recorder of an idle command needs, in percent.
pub fn idle_percent(place: &Place<'_>) -> Result<f64> {
    let mut tracer = Command::new(place.programs.join("tracer"));
    tracer.args(["record", "--overwrite", "--as-root", "-o"]);
    let seconds = (STARTED + IDLE).as_secs() + 1;
    tracer.arg(place.dir.join("idle.trace")).arg("--");
    tracer.args(["/bin/sleep", &seconds.to_string()]);
    tracer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = tracer.spawn().context("cannot start tracer")?;
    thread::sleep(STARTED);
    let before = process::look(&child);
    thread::sleep(IDLE);
    let after = process::look(&child);
    child.wait()?;
    let (before, after) = before.zip(after).context("tracer ended early")?;
    Ok((after.cpu_seconds - before.cpu_seconds) / IDLE.as_secs_f64() * 100.0)
}
