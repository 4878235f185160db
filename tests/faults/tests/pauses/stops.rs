//! Which processes are paused at all, and what happens to stops by others.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use tracer_e2e::{
    place,
    running::{Program, Recorder, descendants, signal, state, wait_for},
    scenario::{Scenario, folder},
};
use tracer_faults::{Attack, tries};
use tracer_store::Trace;

use super::support::{Dice, Ended, tracer};

/// Processes that use no GPU are not paused, however many files they map.
#[test]
fn workers_without_a_gpu_are_not_paused() {
    let dir = folder();
    let files: Vec<_> = (0..300)
        .map(|number| dir.path().join(format!("library-{number}")))
        .collect();
    for file in &files {
        fs::write(file, [0; 4096]).expect("a file");
    }
    let mut pauses = Vec::new();
    for api in ["none", "hip"] {
        let trace = dir.path().join(api);
        let mut recorder = tracer();
        recorder.args(["record", "--as-root", "--api", api, "-o"]).arg(&trace);
        recorder.args([
            "--",
            "/bin/sh",
            "-c",
            "for worker in $(seq 64); do \"$@\" >/dev/null & done; wait",
            "sh",
        ]);
        recorder.arg(place::programs().join("loader")).args(&files);
        let status = recorder.status().expect("tracer runs");
        assert_eq!(status.code(), Some(0), "--api {api}");
        let manifest = Trace::open(&trace).expect("a trace").manifest().clone();
        pauses.push(manifest.pauses.expect("they are counted").count);
    }
    println!(
        "64 workers that map 300 files each: {} pauses, {} with --api hip",
        pauses[0], pauses[1]
    );
    assert_eq!(pauses[0], 0);
    // Each file is examined at least once.
    assert!(pauses[1] >= 300, "{pauses:?}");
}

/// Two recorders pause the same processes at the same places. Neither treats the other's pause as a stop by others.
#[test]
fn two_recorders_leave_nobody_stopped() {
    let mut attack = Attack::new("two of `record -a` at once, and programs that begin to use the KFD");
    let traces = folder();
    let recorders: Vec<Recorder> = ["one", "two"]
        .map(|name| Recorder::start(&traces.path().join(name), &["-a".to_owned()]))
        .into();
    for recorder in &recorders {
        recorder.hears("watching   every process");
    }
    for _ in 0..tries(5, 50) {
        let dir = folder();
        let words = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "20"]).simulated(dir.path());
        let mut program = Ended(Command::new(&words[0]).args(&words[1..]).spawn().expect("it starts"));
        let began = Instant::now();
        attack.count(loop {
            match program.0.try_wait().expect("its state") {
                Some(status) if status.success() => break Ok(()),
                Some(status) => break Err(status.to_string()),
                None if began.elapsed() > Duration::from_secs(30) => break Err("left stopped".to_owned()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        });
    }
    for recorder in recorders {
        let _ = recorder.interrupt().expect_success();
    }
    attack.finish();
}

/// Two recorders attach to one process at the same time, while the process submits and maps new files all the time. Both attach,
/// and both record; the process goes on.
#[test]
fn two_recorders_attach_to_one_process() {
    let mut attack = Attack::new("two of `record -p` at once attach to a process that maps new files all the time");
    for _ in 0..tries(2, 20) {
        attack.count(attach_twice());
    }
    attack.finish();
}

fn attach_twice() -> Result<(), String> {
    let program = Program::steady("trixie", "gfx1100", &["--round=64", "--pause=0"]);
    program.goes_on(100);
    let dir = folder();
    let files = dir.path().join("files");
    fs::create_dir(&files).expect("a folder");
    let mut loader = Command::new(place::programs().join("loader"));
    let loader = loader
        .args(["--kfd", "--fresh"])
        .arg(&files)
        .stdout(std::process::Stdio::null());
    let loader = Ended(loader.spawn().expect("it runs"));
    let words = [
        "-p".to_owned(),
        program.pid().to_string(),
        "-p".to_owned(),
        loader.0.id().to_string(),
    ];
    let recorders: Vec<Recorder> = ["one", "two"]
        .map(|name| Recorder::start(&dir.path().join(name), &words))
        .into();
    for recorder in &recorders {
        recorder.hears("attached   ");
        recorder.hears("attached   ");
    }
    program.goes_on(1000);
    let mut ended = Vec::new();
    for recorder in recorders {
        let recorded = recorder.interrupt().expect_success();
        let doorbells = Trace::open(&recorded.trace)
            .expect("a trace")
            .manifest()
            .counts
            .get("doorbells")
            .copied();
        ended.push(doorbells.unwrap_or(0));
    }
    program.goes_on(100);
    if state(loader.0.id()) == Some('T') {
        return Err("the process that maps files is left stopped".to_owned());
    }
    program.stop();
    if ended.iter().any(|doorbells| *doorbells < 500) {
        return Err(format!("{ended:?} doorbells were recorded"));
    }
    Ok(())
}

/// A process that the user stops while tracer pauses it often stays stopped, even after the recorder's exit.
#[test]
fn a_stop_by_the_user_is_kept() {
    let mut attack = Attack::new("SIGSTOP by the user to a process that maps files often");
    let mut dice = Dice(7);
    let count = tries(10, 50);
    for _ in 0..count {
        attack.count(stop_once(Duration::from_millis(100 + dice.below(300))));
    }
    attack.finish();
}

fn stop_once(after: Duration) -> Result<(), String> {
    let dir = folder();
    let loader = place::programs().join("loader");
    let files = dir.path().join("files");
    fs::create_dir(&files).expect("a folder");
    let mut recorder = tracer();
    recorder
        .args(["record", "--api", "hip", "--as-root", "-o"])
        .arg(dir.path().join("trace"));
    // Each file is mapped for the first time, so each mapping is a pause.
    recorder.arg("--").arg(loader).arg("--fresh").arg(&files);
    let mut recorder = Ended(recorder.spawn().expect("tracer starts"));
    let pid = wait_for("the program", || {
        descendants(recorder.0.id(), "loader").first().copied()
    });
    std::thread::sleep(after);
    signal(pid, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(300));
    let kept = state(pid) == Some('T');
    // The recorder's exit must not resume it either.
    signal(recorder.0.id(), libc::SIGKILL);
    let _ = recorder.0.wait();
    std::thread::sleep(Duration::from_millis(600));
    let kept_after = state(pid) == Some('T');
    if state(pid).is_some() {
        signal(pid, libc::SIGKILL);
    }
    match (kept, kept_after) {
        (true, true) => Ok(()),
        (false, _) => Err("the recorder resumed it".to_owned()),
        (true, false) => Err("the recorder's end resumed it".to_owned()),
    }
}
