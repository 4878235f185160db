//! What the recorder itself needs: processors, memory, room on disk, and time to start and end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::process::{self, Need};
use super::workload::{before_dispatcher, record};
use super::{Place, median};
use crate::cmd;

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
    let (need, _) = process::run(&mut record_workload(place, &trace, &["burst", "-n", &dispatches]))?;
    let recording = Recording {
        need,
        bytes: folder_bytes(&trace)? as f64,
    };
    eprintln!("    {recording:?}");
    Ok(recording)
}

fn record_workload(place: &Place<'_>, trace: &Path, workload: &[&str]) -> Command {
    let mut command = before_dispatcher(place, record(place, trace, &[]));
    command.args(workload);
    command
}

/// Returns the size of all files in a folder and its subfolders.
pub fn folder_bytes(folder: &Path) -> Result<u64> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let sizes = entries.map(|entry| {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            folder_bytes(&entry.path())
        } else {
            Ok(metadata.len())
        }
    });
    sizes.sum()
}

/// Returns the time that `record` adds to a command that uses no GPU, ms.
pub fn added_to_nothing(place: &Place<'_>) -> Result<f64> {
    let mut added = Vec::new();
    for _ in 0..ROUNDS {
        let alone = seconds(&mut Command::new("/bin/true"))?;
        let mut tracer = record(place, &place.dir.join("nothing.trace"), &[]);
        added.push((seconds(tracer.arg("/bin/true"))? - alone) * 1e3);
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
    cmd::run(&mut record_workload(place, &trace, &["burst", "-n", "1000"]))?;
    let run = |_| {
        let mut tracer = Command::new(place.programs.join("tracer"));
        Ok(seconds(tracer.args(["report", "--no-pager"]).arg(&trace))? * 1e3)
    };
    median((0..ROUNDS).map(run).collect::<Result<_>>()?)
}

/// Runs a command and returns its time. Its exit code may say that it has seen no dispatch.
fn seconds(command: &mut Command) -> Result<f64> {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    output.with_context(|| format!("cannot start {command:?}"))?;
    Ok(began.elapsed().as_secs_f64())
}

/// Returns the share of a processor that the recorder of an idle command needs, in percent.
pub fn idle_percent(place: &Place<'_>) -> Result<f64> {
    let mut tracer = record(place, &place.dir.join("idle.trace"), &[]);
    let seconds = (STARTED + IDLE).as_secs() + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_trace_includes_its_parts() {
        let folder = std::env::temp_dir().join(format!("tracer-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join("parts/one")).unwrap();
        fs::write(folder.join("manifest.json"), [0; 3]).unwrap();
        fs::write(folder.join("parts/one/rows"), [0; 40]).unwrap();
        let bytes = folder_bytes(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(bytes.unwrap(), 43);
    }
}
