//! The id of a paused process is reused by an unrelated process that the user has stopped. tracer must not resume that process.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tracer_e2e::{
    place,
    running::{descendants, signal, state, wait_for},
    scenario::folder,
};
use tracer_faults::{Attack, tries};

use super::support::{Ended, kill};

/// The part of tracer that finds the entry of the process that is gone.
#[derive(Clone, Copy, Debug)]
enum Finder {
    /// A guardian, while the recorder is stopped.
    Guardian,
    /// The recorder's keeper, and then the recorder's exit, while the guardians are stopped.
    Recorder,
    /// `tracer doctor --resume`, after recorder and guardians were killed.
    Doctor,
}

/// The system call in which the unrelated process is stopped.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A kill system call.
    Elsewhere,
    /// The system call in which the process that had the id before was paused.
    Same,
}

const CASES: [(Finder, Place); 6] = [
    (Finder::Guardian, Place::Elsewhere),
    (Finder::Recorder, Place::Same),
    (Finder::Doctor, Place::Elsewhere),
    (Finder::Guardian, Place::Same),
    (Finder::Recorder, Place::Elsewhere),
    (Finder::Doctor, Place::Same),
];

/// Starts a recorder that pauses a process repeatedly, in a mount namespace with a BPF file system.
///
/// The process is a shell's child, so that its id is free as soon as it is killed.
fn record(dir: &Path) -> Ended {
    let programs = place::programs();
    let files = dir.join("files");
    fs::create_dir(&files).expect("a folder");
    let mount = "mount -t bpf bpf /sys/fs/bpf && exec \"$@\"";
    let mut recorder = Command::new("unshare");
    recorder.args(["--mount", "/bin/sh", "-c", mount, "sh"]);
    recorder
        .arg(programs.join("tracer"))
        .args(["record", "--api", "hip", "--as-root", "-o"])
        .arg(dir.join("trace"))
        .args([
            "--",
            "/bin/sh",
            "-c",
            "\"$@\" & wait; while read -r line; do :; done",
            "sh",
        ])
        .arg(programs.join("loader"))
        .arg("--fresh")
        .arg(&files);
    // The shell waits for a line that never comes.
    recorder
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ended(recorder.spawn().expect("unshare, of util-linux"))
}

/// Creates a process with that id which the user has stopped. Returns its parent.
fn stranger(pid: u32, place: Place, file: &Path) -> Ended {
    let mut maker = Command::new(place::programs().join("same-pid"));
    maker.arg(pid.to_string());
    match place {
        Place::Elsewhere => maker.arg("stops"),
        Place::Same => maker.arg("maps").arg(file),
    };
    let maker = Ended(maker.spawn().expect("same-pid"));
    let is_there =
        || fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(8).any(|w| w == b"same-pid"));
    wait_for("the stranger", || is_there().then_some(()));
    if let Place::Same = place {
        // Waits until it is stopped in the system call that maps.
        wait_for("the stranger's stop in mmap", || {
            signal(pid, libc::SIGSTOP);
            wait_for("its stop", || (state(pid) == Some('T')).then_some(()));
            let stands = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
            let stands_there = stands.starts_with("9 ");
            if !stands_there {
                signal(pid, libc::SIGCONT);
            }
            stands_there.then_some(())
        });
    } else {
        wait_for("the stranger's stop", || (state(pid) == Some('T')).then_some(()));
    }
    maker
}

/// The processes of a try.
struct Tracers {
    /// The recorder.
    own: u32,
    guardians: Vec<u32>,
    /// The recorded command, which is in the recorder's mount namespace.
    shell: u32,
}

/// Tries once. Returns the harm, or `None` if the process was not paused at that moment.
fn reuse_once(finder: Finder, place: Place) -> Option<Result<(), String>> {
    let dir = folder();
    let recorder = record(dir.path());
    let own = recorder.0.id();
    let pid = wait_for("the program", || descendants(own, "loader").first().copied());
    let tracers = Tracers {
        own,
        guardians: descendants(own, "tracer-guardian"),
        shell: *descendants(own, "sh").first().expect("the command"),
    };
    assert_eq!(tracers.guardians.len(), 2);
    std::thread::sleep(Duration::from_millis(300));
    // From now on no process of tracer ends a pause.
    let all: Vec<u32> = tracers.guardians.iter().copied().chain([own]).collect();
    all.iter().for_each(|&pid| signal(pid, libc::SIGSTOP));
    let paused = (0..40).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        state(pid) == Some('T')
    });
    signal(pid, libc::SIGKILL);
    let file = dir.path().join("mapped-by-the-stranger");
    fs::write(&file, [0; 4096]).expect("a file");
    let stranger = stranger(pid, place, &file);
    let harm = meet(finder, &tracers, pid);
    drop(stranger);
    kill(pid);
    all.into_iter().for_each(kill);
    paused.then_some(harm)
}

/// Lets the finder reach the entry.
fn meet(finder: Finder, tracers: &Tracers, pid: u32) -> Result<(), String> {
    let Tracers { own, guardians, shell } = tracers;
    let (own, shell) = (*own, *shell);
    let resume = |pids: &[u32]| pids.iter().for_each(|&pid| signal(pid, libc::SIGCONT));
    let stays = |who: &str| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(700) {
            if state(pid) != Some('T') {
                return Err(format!("{who} continued the stranger {pid}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    };
    match finder {
        Finder::Guardian => {
            resume(guardians);
            stays("a guardian")?;
            kill(own);
            stays("a guardian, after the recorder's end,")
        }
        Finder::Recorder => {
            resume(&[own]);
            stays("the recorder")?;
            signal(own, libc::SIGTERM);
            stays("the recorder's end")?;
            resume(guardians);
            stays("a guardian, after the recorder's end,")
        }
        Finder::Doctor => {
            guardians.iter().chain([&own]).for_each(|&pid| kill(pid));
            let output = Command::new("nsenter")
                .args(["--target", &shell.to_string(), "--mount"])
                .arg(place::programs().join("tracer"))
                .args(["doctor", "--resume"])
                .output()
                .expect("nsenter, of util-linux");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if !said.contains(&format!("process {pid}, ")) {
                return Err(format!("doctor did not come to the entry: {said}"));
            }
            stays("doctor")
        }
    }
}

#[test]
fn a_stranger_with_the_number_of_a_paused_process_stays_stopped() {
    let mut attack = Attack::new("the number of a paused process is given to a stopped stranger");
    let mut met = 0;
    for attempt in 0..tries(CASES.len(), 60) {
        let (finder, place) = CASES[attempt % CASES.len()];
        if let Some(harm) = reuse_once(finder, place) {
            met += 1;
            attack.count(harm.map_err(|harm| format!("{finder:?}, {place:?}: {harm}")));
        }
    }
    println!("{met} times an entry named the stranger's number");
    assert!(met > 0, "no process was paused at the moment of the kill");
    attack.finish();
}
