//! Recordings of a process whose files or memory block their readers. No other process waits for that, and the recording stops when
//! somebody asks for it.

use std::{fs, process::Command};

use tracer_e2e::{
    compare, place,
    running::{signal, state, wait_for},
    scenario::{Run, Scenario, folder},
};
use tracer_faults::{
    Attack,
    blocking::{BlockingFs, Operation},
    tries,
};

/// Longer than the test takes, so that a process paused for the blocked file stays paused.
const PAUSE_LIMIT: &str = "60000";

/// Records a program that maps a file which blocks the operation, beside a program that dispatches on a simulated GPU.
fn record_beside(operation: Operation) -> Result<(), String> {
    let fs = BlockingFs::mount(vec![0x90; 1 << 20]).map_err(|error| format!("no FUSE mount: {error}"))?;
    let dir = folder();
    // The program itself opens the file, and must not be blocked by that.
    fs.block_after(operation, u32::from(operation == Operation::Open));
    let scenario = Scenario::new("trixie", "gfx1100", &["mixed"]);
    let mut command = scenario.command(&dir);
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let separator = words.iter().position(|word| word == "--").ok_or("no command")?;
    let (options, program) = words.split_at(separator + 1);
    let script = "\"$1\" --kfd --keep --times 1 \"$2\" >/dev/null 2>&1 & echo $! >\"$3\"; \
                  until grep -q 'T (stopped)' /proc/$!/status; do :; done; shift 3; \"$@\"; \
                  code=$?; grep State /proc/$!/status >\"$0\"; exit $code";
    let (then, hostile) = (dir.path().join("state-at-end"), dir.path().join("hostile"));
    let mut recorder = Command::new(command.get_program());
    recorder
        .args(&options[..1])
        .args(["--pause-limit", PAUSE_LIMIT])
        .args(&options[1..]);
    recorder.args(["sh", "-c", script]).arg(&then);
    recorder
        .arg(place::programs().join("loader"))
        .arg(fs.path())
        .arg(&hostile);
    recorder.args(program);
    for (name, value) in command.get_envs() {
        recorder.env(name, value.unwrap_or_default());
    }
    command = recorder;
    let output = command.output().map_err(|error| error.to_string())?;
    let pid: u32 = fs::read_to_string(&hostile)
        .map_err(|error| format!("the hostile program did not start: {error}"))?
        .trim()
        .parse()
        .map_err(|_| "no process id")?;
    let at_end = fs::read_to_string(&then).unwrap_or_default();
    let after = state(pid);
    // The program continues when its file system answers.
    fs.block(None);
    wait_for("the end of the hostile program", || {
        (!matches!(state(pid), Some('T' | 'R' | 'S' | 'D'))).then_some(())
    });
    if output.status.code() != Some(0) {
        return Err(format!(
            "the recording failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    if !at_end.contains('T') {
        return Err(format!("the hostile program was not paused for its file: {at_end}"));
    }
    if after == Some('T') {
        return Err("the hostile program was left paused".to_owned());
    }
    let mut run = Run::read(dir, output);
    compare::of_machine(&mut run);
    let unopened = run
        .trace
        .manifest()
        .losses
        .get("library-unopened")
        .copied()
        .unwrap_or(0);
    if unopened != 1 {
        return Err(format!(
            "files that could not be examined: {unopened} counted, expected 1"
        ));
    }
    Ok(())
}

#[test]
fn no_process_waits_for_a_file_that_another_one_mapped() {
    let mut attack = Attack::new("recording beside a process whose mapped file is on FUSE and never answers");
    for operation in Operation::ALL {
        for _ in 0..tries(1, 10) {
            attack.count(record_beside(operation).map_err(|harm| format!("{operation:?}: {harm}")));
        }
    }
    attack.finish();
}

#[test]
fn a_recording_that_waits_for_a_reader_ends_on_request() {
    let mut attack = Attack::new("SIGTERM and SIGINT while a file on FUSE blocks a reader");
    for number in [libc::SIGTERM, libc::SIGINT] {
        for _ in 0..tries(1, 10) {
            attack.count(end_by(number));
        }
    }
    attack.finish();
}

fn end_by(number: i32) -> Result<(), String> {
    let fs = BlockingFs::mount(vec![0x90; 1 << 20]).map_err(|error| format!("no FUSE mount: {error}"))?;
    fs.block(Some(Operation::Attributes));
    let dir = folder();
    let trace = dir.path().join("t.trace");
    let mut program = Command::new(place::programs().join("loader"));
    program.args(["--kfd", "--keep", "--times", "1"]).arg(fs.path());
    let mut recorder = Command::new(place::programs().join("tracer"));
    // The default, as users have it. Until the pause is over, the command that gets the signal does not act on it.
    recorder.env_remove("TRACER_PAUSE_LIMIT");
    recorder.args(["record", "--as-root", "-o"]).arg(&trace).arg("--");
    recorder.arg(program.get_program()).args(program.get_args());
    let mut recorder = recorder.spawn().map_err(|error| error.to_string())?;
    wait_for("the blocked reader", || (fs.waiting() > 0).then_some(()));
    signal(recorder.id(), number);
    let status = recorder.wait().map_err(|error| error.to_string())?;
    fs.block(None);
    let manifest = tracer_store::Trace::open(&trace).map_err(|error| error.to_string())?;
    if !manifest.manifest().complete {
        return Err(format!("{status}: the trace is not complete"));
    }
    Ok(())
}

/// The user whose program serves the file system.
const OTHER: u32 = 1001;

/// While a probe is installed, the kernel reads the file, and the read cannot be cancelled. tracer trusts root's and the invoking
/// user's programs to answer, and no others.
#[test]
fn a_library_that_another_user_serves_gets_no_probe() {
    let mut attack = Attack::new("an HSA runtime on FUSE, served by another user's program");
    for (user, is_traced) in [(0, true), (OTHER, false)] {
        for _ in 0..tries(1, 5) {
            attack.count(record_runtime_of(user, is_traced));
        }
    }
    attack.finish();
}

fn record_runtime_of(user: u32, is_traced: bool) -> Result<(), String> {
    let folder_of_runtime = place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu");
    let runtime = fs::read(folder_of_runtime.join("libhsa-runtime64.so.1")).map_err(|error| error.to_string())?;
    let fs = BlockingFs::mount_of(user, runtime).map_err(|error| format!("no FUSE mount: {error}"))?;
    let dir = folder();
    let trace = dir.path().join("t.trace");
    let mut recorder = Command::new(place::programs().join("tracer"));
    recorder.args(["record", "--as-root", "-o"]).arg(&trace).arg("--");
    recorder
        .arg(place::programs().join("loader"))
        .args(["--kfd", "--keep", "--times", "1"])
        .arg(fs.path());
    let status = recorder.status().map_err(|error| error.to_string())?;
    if status.code() != Some(0) {
        return Err(format!("the recording failed: {status}"));
    }
    let trace = tracer_store::Trace::open(&trace).map_err(|error| error.to_string())?;
    let manifest = trace.manifest();
    let path = fs.path().display().to_string();
    let attached = manifest
        .probes
        .iter()
        .filter(|probe| probe.library.as_deref() == Some(&path) && probe.error.is_none());
    let untraced = manifest.losses.get("library-untraced").copied().unwrap_or(0);
    match (attached.count(), untraced, is_traced) {
        (1.., 0, true) | (0, 1, false) => Ok(()),
        (attached, untraced, _) => Err(format!(
            "user {user}: {attached} probes attached, {untraced} libraries untraced"
        )),
    }
}
