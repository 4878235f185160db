//! The instructions that a run of each eBPF program takes, against stored baselines: the processor's, with those of the functions of
//! the kernel that the program calls.
//!
//! The machine's clock counts instructions ([`tracer_vm::Config::counts_instructions`]), so that the time that the kernel counts
//! for a program is their number. Unlike a time, it hardly depends on what else the host does. It says nothing about how long an
//! instruction takes: `cargo xtask bench` measures that.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tracer_e2e::{baseline, scenario::Scenario};

use crate::machine::{Machine, quoted, read_json};

/// Fewer runs than this have no stable mean: a timer's interrupt within one of them takes some thousand instructions.
const LEAST_RUNS: u64 = 100;

/// Dispatches of a burst, with a doorbell each: fewer than the ring has packets, so that the program waits for no room.
const DISPATCHES: &str = "5000";

/// What the program itself executes for a dispatch, and what the programs execute for it.
pub fn a_dispatch_takes_no_more_than_before(machine: &mut Machine) {
    let burst = Scenario::new("trixie", "gfx1100", &["burst", "-n", DISPATCHES]);
    let alone = machine.folder();
    machine.sh(&quoted(&burst.simulated(alone.path())));
    let alone = submission(alone.path());

    println!("a submission without a recording: {alone}");

    let mut found = BTreeMap::new();
    for detail in ["dispatch", "full"] {
        let dir = machine.folder();
        let runs = runs(
            machine,
            dir.path(),
            &format!("--detail {detail}"),
            &quoted(&burst.simulated(dir.path())),
        );
        let programs: &[&str] = if detail == "full" {
            &["doorbell", "reserve"]
        } else {
            &["doorbell"]
        };
        for (name, each) in means(&runs, programs) {
            found.insert(format!("{name}, --detail {detail}"), each);
        }
        found.insert(
            format!("added to a submission, --detail {detail}"),
            submission(dir.path()) - alone,
        );
    }
    baseline::compare(&section(machine, "a burst of dispatches"), &found);
}

/// Everything else that a program on a GPU does.
pub fn calls_take_no_more_than_before(machine: &mut Machine) {
    let dir = machine.folder();
    let command = quoted(&Scenario::new("trixie", "gfx1100", &["all"]).simulated(dir.path()));
    let runs = runs(machine, dir.path(), "--api all", &command);
    let found = means(
        &runs,
        &["api_enter", "api_return", "ioctl_enter", "ioctl_exit", "mmap_exit"],
    );
    baseline::compare(&section(machine, "API calls and ioctls"), &found.collect());
}

/// Jobs on rings, ioctls inside the driver, and processes.
pub fn jobs_and_processes_take_no_more_than_before(machine: &mut Machine) {
    let dir = machine.folder();
    let script = dir.path().join("command.sh");
    let command = "ring-jobs comp_1.0.0 -n 500 > /dev/null\n\
                   i=0; while [ $i -lt 12 ]; do i=$((i+1)); kfd-ioctls > /dev/null; done\n\
                   i=0; while [ $i -lt 200 ]; do i=$((i+1)); /bin/true; done\n";
    std::fs::write(&script, command).unwrap();
    let runs = runs(machine, dir.path(), "", &format!("sh -e {}", script.display()));
    let programs = [
        "driver_enter",
        "driver_return",
        "progress_exit",
        "progress_signal",
        "ring_done_raw",
        "ring_run_raw",
        "ring_submit_raw",
        "stop_sent",
        "task_exec_raw",
        "task_exit_raw",
        "task_new_raw",
    ];
    baseline::compare(
        &section(machine, "jobs and processes"),
        &means(&runs, &programs).collect(),
    );
}

fn section(machine: &Machine, what: &str) -> String {
    format!("instructions executed on Linux {}, {what}", machine.kernel)
}

/// Records a command, and returns what the kernel counted of each program meanwhile.
fn runs(machine: &mut Machine, dir: &Path, options: &str, command: &str) -> Vec<Value> {
    let file = dir.join("runs.json");
    machine.report(options, &format!("program-runs -o {} {command}", file.display()));
    let Value::Array(programs) = read_json(&file) else {
        panic!("no list of programs");
    };
    programs
}

/// Returns the mean instructions of a run of each of these programs.
fn means<'a>(runs: &'a [Value], programs: &'a [&str]) -> impl Iterator<Item = (String, u64)> + 'a {
    programs.iter().map(|&name| {
        let mut of_that_name = runs.iter().filter(|program| program["name"] == name);
        let program = of_that_name.next().unwrap_or_else(|| panic!("{name} is not loaded"));
        assert_eq!(of_that_name.next(), None, "a second {name}");
        let (runs, ns) = (program["runs"].as_u64().unwrap(), program["ns"].as_u64().unwrap());
        println!("{name}: {runs} runs");
        assert!(runs >= LEAST_RUNS, "{name} ran {runs} times");
        (name.to_owned(), ns / runs)
    })
}

/// Returns the instructions of a dispatch's submission in the program itself: the median that it reports.
fn submission(dir: &Path) -> u64 {
    let did = read_json(&dir.join("did.json"));
    assert_eq!(did["results"], "ok");
    did["submit_ns"]["p50"].as_u64().unwrap()
}
