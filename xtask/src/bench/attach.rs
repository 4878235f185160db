//! How long attaching to a running program takes, and detaching from it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::ends::monotonic_ns;
use super::workload::queried;
use super::{Place, median};
use crate::simulated;

/// Rounds. The median counts.
const ROUNDS: usize = 9;
/// The time for which a recording runs.
const RECORDED: Duration = Duration::from_secs(1);
/// The time in which the program must be at work.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the rounds took, ms.
#[derive(Clone, Copy, Debug)]
pub struct Attach {
    /// From the start of tracer to the first doorbell of the trace.
    first: f64,
    /// From the request to end to the end of tracer.
    detach: f64,
}

/// Returns the time from the start of tracer to the first doorbell that it sees of a program that rings all the time, ms.
pub fn first_event(place: &Place<'_>) -> Result<f64> {
    place.attach().map(|attach| attach.first)
}

/// Returns the time from Ctrl-C to the end of tracer, ms.
pub fn detach(place: &Place<'_>) -> Result<f64> {
    place.attach().map(|attach| attach.detach)
}

/// Runs all rounds beside one program.
pub fn measure(place: &Place<'_>) -> Result<Attach> {
    let (until, progress) = (place.dir.join("until"), place.dir.join("progress"));
    let mut command = simulated::dispatcher(place.project, &place.programs);
    command.arg("steady").arg("--until").arg(&until);
    command.arg("--progress").arg(&progress).args(["--pause", "1000"]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut program = command.spawn().context("cannot start the simulator")?;
    let rounds = rounds(place, &mut program, &progress);
    fs::write(&until, "").with_context(|| format!("cannot write {}", until.display()))?;
    let ended = program.wait()?;
    let attach = rounds?;
    ensure!(ended.success(), "the program ended with {ended}");
    eprintln!("    {attach:?}");
    Ok(attach)
}

fn rounds(place: &Place<'_>, program: &mut Child, progress: &Path) -> Result<Attach> {
    let begin = Instant::now();
    while !progress.exists() {
        if program.try_wait()?.is_some() || begin.elapsed() > PATIENCE {
            bail!("the program did not begin to work");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let pid = dispatcher(program.id())?.to_string();
    let (mut first, mut detach) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let trace = place.dir.join(format!("attach-{round}.trace"));
        let mut tracer = Command::new(place.programs.join("tracer"));
        tracer.args(["record", "-p", &pid, "-o"]).arg(&trace);
        tracer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began_ns = monotonic_ns();
        let mut tracer = tracer.spawn().context("cannot start tracer")?;
        thread::sleep(RECORDED);
        let asked = Instant::now();
        // Its own child, which it has not waited for, so that the number is still its own.
        kill_process(Pid::from_child(&tracer), Signal::INT).context("cannot interrupt tracer")?;
        tracer.wait()?;
        detach.push(asked.elapsed().as_secs_f64() * 1e3);
        let time: f64 = queried(place, &trace, "select min(time_ns) as first from doorbells")?;
        first.push((time - began_ns) / 1e6);
    }
    Ok(Attach {
        first: median(first)?,
        detach: median(detach)?,
    })
}

/// Returns the dispatcher's process below the simulator's.
fn dispatcher(simulator: u32) -> Result<u32> {
    let mut pid = simulator;
    loop {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).context("the simulator is gone")?;
        if name.trim() == "hsa-dispatch" {
            return Ok(pid);
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
        pid = child.with_context(|| format!("{} has no child process", name.trim()))?;
    }
}
