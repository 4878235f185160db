//! Records a program of others on the simulated GPU and compares the trace with the truth log, for `cargo xtask clients`.
//!
//! Takes a description of the run as JSON, its only argument, and prints what was found as JSON. It exits with 0 whatever it found.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tracer_e2e::{compare, place, scenario::ATTEMPTS, scenario::Run, verdict};

/// What to record, and how.
#[derive(Deserialize)]
struct Wanted {
    /// The folder in which the run's files stay; an older one is removed.
    folder: PathBuf,
    /// The options of the simulator.
    simulator: Vec<String>,
    /// `--api` of the recording.
    api: String,
    /// The environment of the program; it has no other variables but a home folder of its own.
    environment: BTreeMap<String, String>,
    /// The program and its arguments.
    command: Vec<String>,
    /// Seconds that the recording may take.
    limit: u64,
}

/// What was found.
#[derive(Serialize)]
struct Found {
    /// The folder with the trace, the truth log and what the program wrote.
    folder: PathBuf,
    /// The exit code of tracer, which is that of the program unless tracer or the simulator failed.
    exit: Option<i32>,
    /// Whether the recording took too long and was ended.
    late: bool,
    /// How often it was recorded, until a recording lacked nothing that only a busy machine withholds.
    recordings: usize,
    /// The last lines on standard error.
    said: String,
    /// How much each part of the comparison compared.
    compared: BTreeMap<&'static str, usize>,
    /// The first difference of each part that differs.
    differences: BTreeMap<&'static str, String>,
    /// The first difference between the packets that the device took and rows by path `unseen`: for programs that store to
    /// doorbells themselves.
    taken: Option<String>,
    /// Kernel dispatches that the device took, by AQL packets.
    dispatches: u64,
    /// Kernel dispatches that the device took, by PM4 commands.
    pm4_dispatches: u64,
    /// Kernel dispatches of the trace; `None`: not known.
    total: Option<u64>,
    /// Kernel dispatches of the trace, by path; `None`: not known.
    by_path: BTreeMap<String, Option<u64>>,
    /// Doorbells of the trace.
    doorbells: usize,
    /// Dispatches of the trace whose kernel has a name.
    named: usize,
    /// Dispatches of the trace, and copies by copy engines.
    submissions: usize,
    /// Those that are linked to a call.
    linked: usize,
    /// Processes that used the device.
    processes: usize,
    /// Events that the trace counts as lost.
    losses: u64,
    /// The outcome of rule `coverage` of `tracer verify`.
    coverage: String,
}

fn main() -> Result<()> {
    let wanted = env::args().nth(1).context("no description of a run")?;
    let wanted: Wanted = serde_json::from_str(&wanted).context("the description of the run")?;
    let (mut run, mut late) = record(&wanted)?;
    let mut recordings = 1;
    while recordings < ATTEMPTS && !late && run.passed_over() {
        (run, late) = record(&wanted)?;
        recordings += 1;
    }
    let found = find(&run, late, recordings);
    println!("{}", serde_json::to_string(&found)?);
    Ok(())
}

fn record(wanted: &Wanted) -> Result<(Run, bool)> {
    // What an earlier run left may be root's.
    if wanted.folder.exists() {
        fs::remove_dir_all(&wanted.folder)?;
    }
    fs::create_dir_all(&wanted.folder).with_context(|| format!("cannot create {}", wanted.folder.display()))?;
    let mut dir = TempDir::with_prefix_in("run-", &wanted.folder)?;
    dir.disable_cleanup(true);
    let (trace, home) = (dir.path().join("t.trace"), dir.path().join("home"));
    fs::create_dir(&home)?;
    let mut command = Command::new(place::programs().join("tracer"));
    let own = env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRACER_"));
    command
        .env_clear()
        .envs(own)
        .envs(&wanted.environment)
        // Caches that one run leaves must not change the next one.
        .env("HOME", &home)
        .current_dir(dir.path());
    command.args(["record", "--as-root", "--detail", "full", "--api", &wanted.api, "-o"]);
    command.arg(&trace).arg("--");
    command.arg(place::programs().join("kfd-sim")).args(&wanted.simulator);
    command.arg("--truth").arg(dir.path().join("truth.jsonl"));
    command.arg("--").args(&wanted.command);
    // Files and no pipes: what a program wrote before it hung is there to read.
    let file = |name: &str| File::create(dir.path().join(name));
    command
        .stdin(Stdio::null())
        .stdout(file("stdout")?)
        .stderr(file("stderr")?);
    let mut child = command.spawn().context("cannot start tracer")?;
    let (status, late) = wait(&mut child, Duration::from_secs(wanted.limit))?;
    let stderr = fs::read(dir.path().join("stderr"))?;
    ensure!(
        trace.is_dir(),
        "nothing was recorded: {}",
        String::from_utf8_lossy(&stderr)
    );
    let output = Output {
        status,
        stdout: fs::read(dir.path().join("stdout"))?,
        stderr,
    };
    Ok((Run::read(dir, output), late))
}

/// How often a recording is checked for its end, and how long it has for that after a signal.
const POLL: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_secs(30);

/// Waits for the recording. After the limit, ends it as a person would, by SIGINT, which tracer and the simulator pass on; then by
/// force. Returns whether that was necessary.
fn wait(child: &mut Child, limit: Duration) -> Result<(ExitStatus, bool)> {
    let steps = [(limit, libc::SIGINT), (GRACE, libc::SIGKILL), (GRACE, libc::SIGKILL)];
    for (step, (patience, signal)) in steps.into_iter().enumerate() {
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Some(status) = child.try_wait()? {
                return Ok((status, step > 0));
            }
            thread::sleep(POLL);
        }
        // SAFETY: the child was not waited for, so no other process can have its id.
        unsafe { libc::kill(child.id().cast_signed(), signal) };
    }
    bail!("the recording does not end")
}

fn find(run: &Run, late: bool, recordings: usize) -> Found {
    let (mut compared, mut differences) = (BTreeMap::new(), BTreeMap::new());
    for (part, found) in compare::apart(run) {
        match found {
            Ok(count) => drop(compared.insert(part, count)),
            Err(difference) => drop(differences.insert(part, difference)),
        }
    }
    let by_path = run.report["dispatches"]["by_path"].as_object().into_iter().flatten();
    let links = run.dispatches().map(|dispatch| dispatch.api_call);
    // A copy by a kernel is a dispatch already.
    let copies = run.copies().filter(|copy| !copy.is_kernel());
    let links: Vec<Option<u64>> = links.chain(copies.map(|copy| copy.api_call)).collect();
    let trace = run.dir.path().join("t.trace");
    let (_, judged) = verdict::verdict("doorbell-bypass", &trace);
    let said = String::from_utf8_lossy(&run.output.stderr);
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    Found {
        folder: run.dir.path().to_owned(),
        exit: run.output.status.code(),
        late,
        recordings,
        said: last.into_iter().rev().collect::<Vec<_>>().join("\n"),
        compared,
        differences,
        taken: compare::found(|| compare::taken(run)).err(),
        dispatches: run.truth.dispatches(),
        pm4_dispatches: run.truth.pm4_dispatches(),
        total: run.report["dispatches"]["total"].as_u64(),
        by_path: by_path.map(|(path, count)| (path.clone(), count.as_u64())).collect(),
        doorbells: run.doorbells().count(),
        named: run.dispatches().filter(|dispatch| dispatch.kernel.is_some()).count(),
        submissions: links.len(),
        linked: links.iter().flatten().count(),
        processes: run
            .truth
            .ioctls
            .iter()
            .map(|ioctl| ioctl.pid)
            .collect::<BTreeSet<_>>()
            .len(),
        losses: run.report["losses"]["total"].as_u64().unwrap_or(u64::MAX),
        coverage: verdict::rule(&judged, "coverage")["outcome"]
            .as_str()
            .unwrap_or("absent")
            .to_owned(),
    }
}
