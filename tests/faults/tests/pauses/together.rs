//! Recorder and guardians die at the same moment.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use tracer_e2e::{
    place,
    running::{descendants, signal, state, wait_for},
    scenario::folder,
};
use tracer_faults::{Attack, tries};

use super::support::Ended;

/// Recorder and guardians die at the same moment. `tracer doctor --resume` finds the processes that they left paused by a pinned
/// map.
#[test]
fn what_dies_together_is_found_by_the_next_tracer() {
    let mut attack = Attack::new("SIGKILL of recorder and guardians at once, then doctor --resume");
    let mut left = 0;
    for attempt in 0..tries(4, 20) {
        match kill_all_once(Duration::from_millis(200 + 37 * attempt as u64)) {
            Ok(was_left) => {
                left += usize::from(was_left);
                attack.count(Ok(()));
            }
            Err(harm) => attack.count(Err(harm)),
        }
    }
    // Otherwise the attack never tested what it is meant to test.
    assert!(left > 0, "no process was paused at the moment of the kill");
    println!("{left} times a process was left paused, and resumed by doctor");
    attack.finish();
}

/// Tries once. Returns whether a process was left paused, or the harm.
fn kill_all_once(after: Duration) -> Result<bool, String> {
    let dir = folder();
    let files = dir.path().join("files");
    fs::create_dir(&files).expect("a folder");
    let programs = place::programs();
    // A BPF file system in the test's own mount namespace, because not every machine has one mounted.
    let mut recorder = Command::new("unshare");
    recorder.args([
        "--mount",
        "/bin/sh",
        "-c",
        "mount -t bpf bpf /sys/fs/bpf && exec \"$@\"",
        "sh",
    ]);
    recorder
        .arg(programs.join("tracer"))
        .args(["record", "--api", "hip", "--as-root", "-o"]);
    recorder
        .arg(dir.path().join("trace"))
        .arg("--")
        .arg(programs.join("loader"))
        .arg("--fresh")
        .arg(&files);
    recorder
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let mut recorder = Ended(recorder.spawn().expect("unshare, of util-linux"));
    let pid = wait_for("the program", || {
        descendants(recorder.0.id(), "loader").first().copied()
    });
    std::thread::sleep(after);
    let mut victims = descendants(recorder.0.id(), "tracer-guardian");
    assert_eq!(victims.len(), 2);
    victims.push(recorder.0.id());
    for victim in victims {
        signal(victim, libc::SIGKILL);
    }
    let _ = recorder.0.wait();
    // Longer than the eBPF programs pause processes without a sign of life.
    std::thread::sleep(Duration::from_millis(500));
    let was_left = state(pid) == Some('T');
    let doctor = Command::new("nsenter")
        .args(["--target", &pid.to_string(), "--mount"])
        .arg(programs.join("tracer"))
        .args(["doctor", "--resume"])
        .output()
        .expect("nsenter, of util-linux");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let named = said.contains(&format!("process {pid}, "));
    let goes_on = state(pid) != Some('T');
    signal(pid, libc::SIGKILL);
    if !doctor.status.success() {
        return Err(format!("doctor --resume: {}", String::from_utf8_lossy(&doctor.stderr)));
    }
    match (was_left, goes_on) {
        (_, false) => Err(format!("process {pid} is still stopped; doctor said: {said}")),
        (true, true) if !named => Err(format!("doctor did not name process {pid}: {said}")),
        (was_left, true) => Ok(was_left),
    }
}
