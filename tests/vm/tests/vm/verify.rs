//! Verdicts where both paths can be seen: doorbells of AMD's runtime on a simulated GPU, and rings of the kernel's own
//! scheduler with the mock's hardware.

use std::path::Path;

use serde_json::{Value, json};
use tracer_e2e::{
    scenario::Scenario,
    verdict::{amiss, rule},
};

use crate::machine::{Machine, TTM_CLEAR_BUFFER, quoted, read_json};

/// Exit code and verdict of a command under a policy.
fn verify(machine: &mut Machine, dir: &Path, policy: &str, options: &str, command: &str) -> (i32, Value) {
    let (script, verdict) = (dir.join("command.sh"), dir.join("verdict.json"));
    std::fs::write(&script, command).unwrap();
    let _ = std::fs::remove_file(&verdict);
    let line = format!(
        "tracer verify --policy {policy} {options} --json {} -- sh -e {}",
        verdict.display(),
        script.display()
    );
    let output = machine.run(&line);
    let said = output.stdout_text() + &output.stderr_text();
    println!("{line}\n{said}");
    (output.code, read_json(&verdict))
}

fn passes((code, found): &(i32, Value)) {
    assert_eq!((*code, &found["outcome"]), (0, &json!("pass")), "{found:#}");
}

pub fn verdicts(machine: &mut Machine) {
    let dir = machine.folder();
    let on = |asic| quoted(&Scenario::new("trixie", asic, &["compute-only", "-n", "20"]).simulated(dir.path()));
    let (mes, hws) = (on("gfx1100"), on("gfx942"));

    passes(&verify(machine, dir.path(), "mes-bypass", "", &mes));
    passes(&verify(machine, dir.path(), "doorbell-bypass", "", &hws));
    passes(&verify(machine, dir.path(), "hws", "", &hws));
    let (code, found) = verify(machine, dir.path(), "mes-bypass", "", &hws);
    assert_eq!(
        (code, amiss(&found)),
        (1, [("scheduler".into(), "fail".into())].into()),
        "{found:#}"
    );

    jobs_of_the_process_fail(machine, dir.path(), &mes);
    jobs_of_others_do_not_decide(machine, dir.path(), &mes);
    a_lost_event_leaves_it_open(machine, dir.path(), &mes);
    kernels_on_rings(machine, dir.path(), &mes);
}

/// The jobs are named: ring, process and thread.
fn jobs_of_the_process_fail(machine: &mut Machine, dir: &Path, compute: &str) {
    let jobs = dir.join("jobs.json");
    let command = format!("{compute}; ring-jobs comp_1.0.0 -n 3 > {}", jobs.display());
    let (code, found) = verify(machine, dir, "mes-bypass", "", &command);
    assert_eq!(
        (code, amiss(&found)),
        (1, [("no-ring".into(), "fail".into())].into()),
        "{found:#}"
    );
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

/// The driver's own jobs on sdma0, and an untraced process's on a compute ring, while the program runs.
fn jobs_of_others_do_not_decide(machine: &mut Machine, dir: &Path, compute: &str) {
    let stop = dir.join("stop");
    let others = format!(
        "while [ ! -e {} ]; do ring-jobs sdma0 -n 5 --client {TTM_CLEAR_BUFFER}; ring-jobs comp_1.1.0; done",
        stop.display()
    );
    machine.sh(&format!("({others}) < /dev/null > /dev/null 2>&1 &"));
    let (code, found) = verify(machine, dir, "mes-bypass", "", compute);
    std::fs::write(&stop, "").unwrap();
    passes(&(code, found.clone()));
    let rings = rule(&found, "no-ring");
    assert!(rings["counts"]["jobs"].as_u64() >= Some(6), "{rings:#}");
    assert_eq!(rings["counts"]["jobs_of_traced_processes"], 0);
    let notes = rings["notes"].to_string();
    // Linux 6.1 does not know clients of jobs.
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

/// The recorder is stopped until its smallest buffer has no room any more.
fn a_lost_event_leaves_it_open(machine: &mut Machine, dir: &Path, compute: &str) {
    let jobs = "ring=sdma0 count=1000 us=0 client=0 error=0 dep=0 wait=1";
    let command = format!(
        "{compute}\nkill -STOP $PPID\nfor i in 1 2 3 4 5 6 7 8; do echo '{jobs}' > /dev/drm-sched-mock; done\n\
         kill -CONT $PPID\n"
    );
    let (code, found) = verify(machine, dir, "mes-bypass", "--buffer 1", &command);
    assert_eq!(code, 3, "{found:#}");
    let sound = rule(&found, "sound-capture");
    assert_eq!(sound["outcome"], "inconclusive");
    assert!(sound["counts"]["losses"].as_u64() > Some(0), "{sound:#}");
}

/// The opposite expectation: jobs on compute rings and no doorbell.
fn kernels_on_rings(machine: &mut Machine, dir: &Path, compute: &str) {
    let (code, found) = verify(machine, dir, "ring-submission", "", compute);
    assert_eq!(
        (code, &rule(&found, "ring-submission")["outcome"]),
        (1, &json!("fail")),
        "{found:#}"
    );
}

pub fn without_a_scheduler_nothing_passes(machine: &mut Machine) {
    let dir = machine.folder();
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "20"]);
    let compute = quoted(&scenario.simulated(dir.path()));
    let (code, found) = verify(machine, dir.path(), "mes-bypass", "", &compute);
    assert_eq!(
        (code, amiss(&found)),
        (3, [("no-ring".into(), "inconclusive".into())].into()),
        "{found:#}"
    );
    assert_eq!(rule(&found, "no-ring")["missing"][0]["source"], "gpu_scheduler events");
}
