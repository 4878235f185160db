//! Verdicts where both paths can be seen: doorbells of AMD's runtime on a simulated GPU, and rings of the kernel's own scheduler
//! with the mock's hardware.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tracer_e2e::{
    scenario::Scenario,
    verdict::{amiss, rule, verdict},
};

use crate::machine::{self, Machine, TTM_CLEAR_BUFFER, quoted, read_json};

/// Turns a command of several lines into one word or two.
fn script(dir: &Path, command: &str) -> String {
    let script = dir.join("command.sh");
    std::fs::write(&script, command).unwrap();
    format!("sh -e {}", script.display())
}

/// Records a command, to be judged on the host.
fn record(machine: &mut Machine, dir: &Path, options: &str, command: &str) -> PathBuf {
    let command = script(dir, command);
    machine.record(&format!("--detail full {options}"), &command).1
}

/// Checks the exit code and the rules that did not pass.
fn expect(policy: &str, trace: &Path, code: i32, wrong: &[(&str, &str)]) -> Value {
    let (ended, found) = verdict(policy, trace);
    let wrong = wrong
        .iter()
        .map(|(rule, outcome)| ((*rule).to_owned(), (*outcome).to_owned()));
    assert_eq!(
        (ended, amiss(&found)),
        (Some(code), wrong.collect()),
        "{policy}: {found:#}"
    );
    found
}

pub fn verdicts(machine: &mut Machine) {
    let dir = machine.folder();
    let on = |asic| quoted(&Scenario::new("trixie", asic, &["compute-only", "-n", "20"]).simulated(dir.path()));
    let (mes, hws) = (on("gfx1100"), on("gfx942"));

    // The complete procedure in the machine, with its exit code.
    let kept = dir.path().join("kept.trace");
    let line = format!("tracer verify --policy mes-bypass -o {} -- {mes}", kept.display());
    let output = machine.recorded(&line, &kept);
    println!("{line}\n{}", output.stdout_text());
    expect("mes-bypass", &kept, 0, &[]);
    let rings = expect("ring-submission", &kept, 1, &[("ring-submission", "fail")]);
    assert_eq!(rings["simulated"], "kfd-sim 0.1.0 gfx1100");

    let trace = record(machine, dir.path(), "", &hws);
    expect("doorbell-bypass", &trace, 0, &[]);
    expect("hws", &trace, 0, &[]);
    expect("mes-bypass", &trace, 1, &[("scheduler", "fail")]);

    jobs_of_the_process_fail(machine, dir.path(), &mes);
    jobs_from_before_do_not_decide(machine, dir.path(), &mes);
    jobs_of_others_do_not_decide(machine, dir.path(), &mes);
    a_lost_event_leaves_it_open(machine, dir.path(), &mes);
}

/// The verdict names the jobs: ring, process and thread.
fn jobs_of_the_process_fail(machine: &mut Machine, dir: &Path, compute: &str) {
    let jobs = dir.join("jobs.json");
    let command = format!("{compute}; ring-jobs comp_1.0.0 -n 3 > {}", jobs.display());
    let trace = record(machine, dir, "", &command);
    let found = expect("mes-bypass", &trace, 1, &[("no-ring", "fail")]);
    let jobs = read_json(&jobs);
    let rings = rule(&found, "no-ring");
    assert_eq!(rings["counts"]["jobs_of_traced_processes"], 3);
    let offenders = rings["offenders"].as_array().unwrap();
    assert_eq!(offenders.len(), 3);
    for offender in offenders {
        assert_eq!(
            (&offender["ring"], &offender["pid"], &offender["tid"]),
            (&json!("comp_1.0.0"), &jobs["pid"], &jobs["tid"])
        );
    }
}

/// Returns the number of jobs that a ring of the mock was ever given.
fn submitted(machine: &mut Machine, ring: &str) -> u64 {
    let counts = machine::json(&machine.sh("cat /dev/drm-sched-mock"));
    let mut rings = counts["rings"].as_array().unwrap().iter();
    rings.find(|of| of["name"] == ring).unwrap()["submitted"]
        .as_u64()
        .unwrap()
}

/// The jobs wait on a compute ring when the recording starts, and run while the program runs: 200 s of them, because the recording
/// may be repeated.
fn jobs_from_before_do_not_decide(machine: &mut Machine, dir: &Path, compute: &str) {
    const JOBS: u64 = 160;
    const RING: &str = "comp_1.1.0";
    let submitter = dir.join("submitter");
    let before = submitted(machine, RING);
    machine.sh(&format!(
        "ring-jobs {RING} -n {JOBS} --us 1200000 < /dev/null > /dev/null 2>&1 & echo $! > {}",
        submitter.display()
    ));
    let all = (0..1000).any(|_| submitted(machine, RING) >= before + JOBS);
    assert!(all, "the jobs were never submitted");
    let trace = record(machine, dir, "", compute);
    machine.sh(&format!(
        "pid=$(cat {}); kill $pid; while [ -e /proc/$pid ]; do sleep 0.1; done",
        submitter.display()
    ));
    let found = expect("mes-bypass", &trace, 0, &[]);
    let rings = rule(&found, "no-ring");
    let seen = rings["counts"]["jobs"].as_u64().unwrap();
    assert!((1..=JOBS).contains(&seen), "{rings:#}");
    let notes = rings["notes"].to_string();
    assert!(notes.contains("from before the recording"), "{notes}");
}

/// The driver's own jobs on sdma0, and an untraced process's jobs on a compute ring, while the program runs.
fn jobs_of_others_do_not_decide(machine: &mut Machine, dir: &Path, compute: &str) {
    let stop = dir.join("stop");
    let others = format!(
        "while [ ! -e {} ]; do ring-jobs sdma0 -n 5 --client {TTM_CLEAR_BUFFER}; ring-jobs comp_1.1.0; done",
        stop.display()
    );
    machine.sh(&format!("({others}) < /dev/null > /dev/null 2>&1 &"));
    let trace = record(machine, dir, "", compute);
    std::fs::write(&stop, "").unwrap();
    let found = expect("mes-bypass", &trace, 0, &[]);
    let rings = rule(&found, "no-ring");
    assert!(rings["counts"]["jobs"].as_u64() >= Some(6), "{rings:#}");
    assert_eq!(rings["counts"]["jobs_of_traced_processes"], 0);
    let notes = rings["notes"].to_string();
    // Linux 6.1 does not report clients of jobs.
    let sdma = if machine.kernel == "6.1" {
        "sdma jobs, other processes"
    } else {
        "sdma jobs, the driver's own (ttm-clear-buffer)"
    };
    assert!(
        notes.contains(sdma) && notes.contains("comp jobs, other processes"),
        "{notes}"
    );
}

/// The recorder is stopped until its smallest buffer is full.
fn a_lost_event_leaves_it_open(machine: &mut Machine, dir: &Path, compute: &str) {
    let jobs = "ring=sdma0 count=1000 us=0 client=0 error=0 dep=0 wait=1";
    let command = format!(
        "{compute}\nkill -STOP $PPID\nfor i in 1 2 3 4 5 6 7 8; do echo '{jobs}' > /dev/drm-sched-mock; done\n\
         kill -CONT $PPID\n"
    );
    let trace = record(machine, dir, "--buffer 1", &command);
    let (code, found) = verdict("mes-bypass", &trace);
    assert_eq!(code, Some(3), "{found:#}");
    let sound = rule(&found, "sound-capture");
    assert_eq!(sound["outcome"], "inconclusive");
    assert!(sound["counts"]["losses"].as_u64() > Some(0), "{sound:#}");
}

pub fn without_a_scheduler_nothing_passes(machine: &mut Machine) {
    let dir = machine.folder();
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "20"]);
    let compute = quoted(&scenario.simulated(dir.path()));
    let trace = record(machine, dir.path(), "", &compute);
    let found = expect("mes-bypass", &trace, 3, &[("no-ring", "inconclusive")]);
    assert_eq!(rule(&found, "no-ring")["missing"][0]["source"], "gpu_scheduler events");
}
