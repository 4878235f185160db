//! The recorder itself: exit codes, refused requests, and that it harms no process whatever happens to it.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tracer_e2e::{place, scenario};
use tracer_store::{State, Trace};

fn tracer() -> Command {
    Command::new(place::programs().join("tracer"))
}

fn record(dir: &Path, command: &[&str]) -> Output {
    tracer()
        .args(["record", "-o"])
        .arg(dir)
        .arg("--")
        .args(command)
        .output()
        .expect("tracer runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the state letter of a process, or `None` if the process is gone.
fn state(pid: u32) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let mut all: Vec<u32> = fs::read_to_string(path)
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect();
    // A thread of the recorder forks the command.
    for task in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|p| p.parse::<u32>().ok()));
    }
    all
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_exit_code_is_the_commands() {
    let dir = TempDir::new().unwrap();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let output = record(&dir.path().join(code.to_string()), &["/bin/sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    }
}

#[test]
fn a_command_that_cannot_run_differs_from_one_that_is_missing() {
    let dir = TempDir::new().unwrap();
    let output = record(&dir.path().join("a"), &["/no/such/program"]);
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
    assert!(said(&output).contains("/no/such/program"));
    let output = record(&dir.path().join("b"), &["/etc/passwd"]);
    assert_eq!(output.status.code(), Some(126), "{}", said(&output));
    assert!(
        !dir.path().join("a").exists() && !dir.path().join("b").exists(),
        "a trace of nothing was left"
    );
}

#[test]
fn what_was_not_watched_is_unknown() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("t");
    assert!(record(&trace, &["/bin/true"]).status.success());
    let report = scenario::report(&trace);
    assert!(
        report["dispatches"]["total"].is_null(),
        "no runtime was loaded, so nothing was watched: {report}"
    );
    assert_eq!(report["complete"], true);
    assert_eq!(report["losses"]["total"], 0);
}

#[test]
fn a_trace_is_replaced_only_on_demand_and_anything_else_never() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("t");
    assert!(record(&trace, &["/bin/true"]).status.success());
    let again = record(&trace, &["/bin/true"]);
    assert_eq!(again.status.code(), Some(125));
    assert!(
        said(&again).contains("--overwrite") || said(&again).contains("overwrite"),
        "{}",
        said(&again)
    );
    let forced = tracer()
        .args(["record", "--overwrite", "-o"])
        .arg(&trace)
        .args(["--", "/bin/true"])
        .output()
        .unwrap();
    assert!(forced.status.success(), "{}", said(&forced));
    fs::create_dir(dir.path().join("precious")).unwrap();
    fs::write(dir.path().join("precious/file"), "x").unwrap();
    let foreign = record(&dir.path().join("precious"), &["/bin/true"]);
    assert_eq!(foreign.status.code(), Some(125));
    assert_eq!(fs::read_to_string(dir.path().join("precious/file")).unwrap(), "x");
}

/// The command loads libraries all the time, so tracer pauses it repeatedly. The test kills the recorder at some of these moments.
#[test]
fn a_killed_recorder_leaves_nobody_stopped_and_a_readable_trace() {
    for pause_ms in [300, 450, 600, 750, 900] {
        let dir = TempDir::new().unwrap();
        let trace = dir.path().join("t");
        let script = "while :; do /bin/true; done";
        let mut recorder = tracer()
            .args(["record", "-o"])
            .arg(&trace)
            .args(["--", "/bin/sh", "-c", script])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shell = wait_for("the shell", || {
            let is_shell = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "sh");
            children(recorder.id()).into_iter().find(is_shell)
        });
        std::thread::sleep(Duration::from_millis(pause_ms));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        // It continues to work: its processor time grows.
        let ticks = || -> u64 {
            let text = fs::read_to_string(format!("/proc/{shell}/stat")).expect("the shell lives");
            let fields: Vec<&str> = text.rsplit_once(") ").expect("stat").1.split(' ').collect();
            // utime, stime, and those of exited children (`proc_pid_stat(5)`, from field 3 on).
            (11..15).map(|i| fields[i].parse::<u64>().expect("a number")).sum()
        };
        std::thread::sleep(Duration::from_millis(400));
        let before = ticks();
        wait_for("the shell to go on", || (ticks() > before).then_some(()));
        assert_ne!(state(shell), Some('T'));
        // SAFETY: this test started the process.
        unsafe { libc::kill(shell as i32, libc::SIGKILL) };
        let trace = Trace::open(&trace).unwrap();
        assert_eq!(trace.state(), State::Interrupted);
    }
}

#[test]
fn a_terminated_recorder_passes_it_on_and_closes_the_trace() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("t");
    let mut recorder = tracer()
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", "/bin/sleep", "1000"])
        .spawn()
        .unwrap();
    wait_for("the command", || {
        let sleeps = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "sleep");
        children(recorder.id()).into_iter().find(sleeps)
    });
    // SAFETY: this test started the process.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGTERM) };
    assert_eq!(recorder.wait().unwrap().code(), Some(143));
    assert_eq!(Trace::open(&trace).unwrap().state(), State::Complete);
}

/// Diagnostics of the eBPF programs are printed only on request.
#[test]
fn diagnostics_are_for_vv_only() {
    let dir = TempDir::new().unwrap();
    let said_with = |options: &[&str], name: &str| {
        let output = tracer()
            .args(options)
            // With API calls, processes without a GPU are also paused when they map files.
            .args(["record", "--api", "hip", "-o"])
            .arg(dir.path().join(name))
            .args(["--", "/bin/true"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let loud = said_with(&["-vv"], "loud");
    assert!(loud.contains("is paused") && loud.contains("ended"), "{loud}");
    let usual = said_with(&[], "usual");
    assert!(!usual.contains("is paused") && !usual.contains("ended"), "{usual}");
}

#[test]
fn without_rights_the_error_names_the_fix() {
    let dir = TempDir::new().unwrap();
    let output = place::without_rights()
        .args(["record", "-o"])
        .arg(dir.path().join("t"))
        .args(["--", "/bin/true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains("sudo"), "{}", said(&output));
}
