//! Kills of the recorder and its guardians at random moments, in any order. One test per way of recording.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tracer_e2e::{
    running::{descendants, signal, state, wait_for},
    scenario::{Scenario, folder},
};
use tracer_faults::{Attack, in_kernel::Loaded, tries};

use super::support::{
    Dice, Ended, Stranger, below, kill, kill_all, left_stopped, tracer, with_last_argument, with_text,
};

/// How processes come to be traced.
#[derive(Clone, Copy, Debug)]
enum Way {
    Launch,
    LaunchWithCalls,
    Attach,
    System,
}

/// A step of the attack on the recorder's processes.
#[derive(Clone, Copy, Debug)]
enum Blow {
    StopRecorder,
    KillRecorder,
    /// The guardian with this number, in their order before the first blow.
    KillGuardian(usize),
    Wait(Duration),
}

/// Returns a sequence of blows, one of which kills the recorder. A guardian is replaced within 0.3 s. At most one guardian dies at
/// about the same time as the recorder, because the kill of all three is another attack (`together`).
fn blows(attempt: usize, dice: &mut Dice) -> Vec<Blow> {
    use Blow::{KillGuardian, KillRecorder, StopRecorder, Wait};
    let guardian = KillGuardian(attempt % 2);
    let other = KillGuardian((attempt + 1) % 2);
    let gap = Wait(dice.millis(60));
    let replaced = Wait(Duration::from_millis(300));
    match attempt % 7 {
        0 => vec![KillRecorder],
        1 => vec![StopRecorder, Wait(Duration::from_millis(100)), KillRecorder],
        2 => vec![guardian, KillRecorder],
        3 => vec![KillRecorder, guardian],
        4 => vec![guardian, gap, KillRecorder],
        5 => vec![KillRecorder, gap, guardian],
        _ => vec![guardian, replaced, other, replaced, KillRecorder],
    }
}

/// Returns the argument of the workload's process that stops itself.
fn stopped_mark(mark: &str) -> String {
    format!("{mark}-stopped")
}

/// Returns a program that forks. Its children map libraries and use the simulated GPU, load and unload code objects there, and
/// start again; one of them is a daemon, and one stops itself.
fn workload(dir: &Path, mark: &str) -> Vec<OsString> {
    let scenario = Scenario::new("trixie", "gfx1100", &["reload", "-n", "6"]);
    let script = "sh -c 'kill -STOP $$; exit' \"$1\" & shift; \
                  (setsid sh -c 'while :; do /bin/true; done' \"$0\" &); \
                  (while :; do \"$@\"; done) & \
                  while :; do /bin/true; /bin/ls / >/dev/null; done";
    let stopped = stopped_mark(mark);
    let mut words: Vec<OsString> = ["/bin/sh", "-c", script, mark, &stopped].map(Into::into).into();
    words.extend(scenario.simulated(dir));
    words
}

/// Starts a recording of the workload, and the workload itself unless the recorder starts it.
fn start(way: Way, trace: &Path, words: &[OsString]) -> (Ended, Option<Ended>) {
    let mut recorder = tracer();
    recorder.arg("record").arg("-o").arg(trace);
    let mut program = None;
    match way {
        Way::Launch => recorder.args(["--as-root", "--"]).args(words),
        Way::LaunchWithCalls => recorder.args(["--api", "all", "--as-root", "--"]).args(words),
        Way::Attach | Way::System => {
            let child = Command::new(&words[0])
                .args(&words[1..])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let child = Ended(child.expect("the program starts"));
            let pid = child.0.id().to_string();
            program = Some(child);
            match way {
                Way::System => recorder.arg("-a"),
                _ => recorder.args(["-p", &pid]),
            }
        }
    };
    (Ended(recorder.spawn().expect("tracer starts")), program)
}

/// Tries once. Returns the harm.
fn kill_once(way: Way, blows: &[Blow], after: Duration) -> Result<(), String> {
    let before = Loaded::now();
    let outside = Stranger::stopped();
    let (dir, traces) = (folder(), folder());
    let mark = dir.path().to_string_lossy().into_owned();
    let trace = traces.path().join("trace");
    let (mut recorder, program) = start(way, &trace, &workload(dir.path(), &mark));
    let pid = recorder.0.id();
    wait_for("the trace", || {
        let exited = recorder.0.try_wait().expect("its state").is_some();
        (trace.join("manifest.json").exists() || exited).then_some(())
    });
    std::thread::sleep(after);
    let guardians = descendants(pid, "tracer-guardian");
    if guardians.len() != 2 || Loaded::now().since(&before).is_empty() {
        return Err(format!("the recorder does not record: guardians {guardians:?}"));
    }
    for blow in blows {
        match *blow {
            Blow::StopRecorder => signal(pid, libc::SIGSTOP),
            Blow::KillRecorder => kill(pid),
            Blow::KillGuardian(number) => kill(guardians[number]),
            Blow::Wait(time) => std::thread::sleep(time),
        }
    }
    let _ = recorder.0.wait();
    let stopped = stopped_mark(&mark);
    let others = || {
        let strangers = with_last_argument(&stopped);
        let marked = with_text(&mark);
        let all = marked.iter().flat_map(|&pid| [pid].into_iter().chain(below(pid)));
        all.filter(|pid| !strangers.contains(pid)).collect()
    };
    let harm = left_stopped(others)
        .and_then(|()| outside.stays_stopped())
        .and_then(|()| inside_stays_stopped(&mark, &stopped));
    // The workload never exits by itself.
    drop(program);
    kill_all(&mark);
    let gone = (0..1200).any(|_| {
        std::thread::sleep(Duration::from_millis(25));
        with_text(&trace.to_string_lossy()).is_empty()
    });
    harm.and_then(|()| {
        if gone {
            Ok(())
        } else {
            Err("a process of tracer's is left".to_owned())
        }
    })
    .and_then(|()| before.comes_back())
}

/// Checks the process of the workload that stopped itself. If the recorder died before its command started, there is none.
fn inside_stays_stopped(mark: &str, stopped: &str) -> Result<(), String> {
    // When it is continued, it exits.
    let is_there = || with_last_argument(stopped).into_iter().any(has_stopped_itself);
    let found = (0..200).any(|_| {
        let found = is_there();
        if !found {
            std::thread::sleep(Duration::from_millis(25));
        }
        found
    });
    if found || with_text(mark).is_empty() {
        Ok(())
    } else {
        Err("a traced process that stopped itself was continued".to_owned())
    }
}

/// Returns whether it is stopped in a kill system call, where tracer never pauses a process.
fn has_stopped_itself(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    state(pid) == Some('T') && call.split(' ').next() == Some("62")
}

/// Makes all tries of one way of recording.
fn attack(name: &'static str, way: Way) {
    let mut attack = Attack::new(name);
    let mut dice = Dice(20_261_123 + way as u64);
    for attempt in 0..tries(2, 50) {
        // Quick runs use another order for each way.
        let blows = blows(attempt + 2 * way as usize, &mut dice);
        let after = dice.millis(400);
        let harm = kill_once(way, &blows, after);
        attack.count(harm.map_err(|harm| format!("{blows:?} after {after:?}: {harm}")));
    }
    attack.finish();
}

#[test]
fn of_a_command() {
    attack(
        "kills of recorder and guardians at random moments: a command",
        Way::Launch,
    );
}

#[test]
fn of_a_command_with_calls() {
    attack(
        "kills of recorder and guardians at random moments: a command, with API calls",
        Way::LaunchWithCalls,
    );
}

#[test]
fn of_an_attached_process() {
    attack(
        "kills of recorder and guardians at random moments: attached to",
        Way::Attach,
    );
}

#[test]
fn of_every_process() {
    attack(
        "kills of recorder and guardians at random moments: every process",
        Way::System,
    );
}
