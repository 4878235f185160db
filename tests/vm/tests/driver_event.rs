//! amdgpu's own trace events on each of Debian's kernels: the programs load, and stand on every event that the kernel has.
//!
//! Without a GPU none of the events ever comes, and nothing here makes one up. What the programs read of an event's record
//! is tested in `tests/e2e/tests/driver_event.rs`, at events of the kernel that do come.
//!
//! `cargo xtask test --vm` runs them: they need what `cargo xtask setup --only vm` installs.

#![expect(clippy::unwrap_used, reason = "a test fails by it, with the line")]

use serde_json::Value;
use tracer_vm::{Command, Config, Kernel, Module, Vm};

/// Why the tests are left out of an ordinary run.
macro_rules! on_each_kernel {
    ($($check:ident),*) => {
        mod v6_1 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("6.1"); })* }
        mod v6_12 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("6.12"); })* }
        mod v7 { $(#[test] #[ignore = "needs virtual machines: cargo xtask test --vm"] fn $check() { super::$check("7.x"); })* }
    };
}
on_each_kernel!(
    every_event_that_there_is_is_watched,
    without_the_driver_they_are_unknown
);

/// Events that the tracer knows.
const EVENTS: [&str; 5] = [
    "amdgpu_bo_move",
    "amdgpu_cleaner_shader",
    "amdgpu_cs_ioctl",
    "amdgpu_sched_run_job",
    "amdgpu_vm_flush",
];

fn boot(kernel: &str, modules: &[Module]) -> Vm {
    let mut config = Config::new(Kernel::find(kernel).unwrap()).unwrap();
    config.modules = modules.to_vec();
    Vm::boot(&config).unwrap()
}

/// Runs a shell command that must succeed; what it printed.
fn sh(vm: &mut Vm, script: &str) -> String {
    let output = vm.run(&Command::new("sh").args(["-ec", script])).unwrap();
    let (out, said) = (output.stdout_text(), output.stderr_text());
    assert_eq!(output.code, 0, "{script}: {out}{said}");
    out
}

fn record(vm: &mut Vm) -> Value {
    sh(vm, "tracer record -o /tmp/t -- true");
    serde_json::from_str(&sh(vm, "tracer report --format json /tmp/t")).unwrap()
}

/// Names of the events that have a probe which is in, in order; none is out.
fn watched(report: &Value) -> Vec<String> {
    let probes = report["probes"].as_array().unwrap();
    let of_family: Vec<&Value> = probes.iter().filter(|p| p["family"] == "driver_event").collect();
    assert!(of_family.iter().all(|p| p["attached"] == true), "{of_family:?}");
    let name = |probe: &&Value| probe["symbol"].as_str().unwrap().replace("amdgpu:", "");
    let mut names: Vec<String> = of_family.iter().map(name).collect();
    names.sort();
    names
}

fn every_event_that_there_is_is_watched(kernel: &str) {
    let mut vm = boot(kernel, &[Module::Amdgpu]);
    let there = sh(&mut vm, "ls /sys/kernel/tracing/events/amdgpu");
    let expected: Vec<&str> = EVENTS
        .into_iter()
        .filter(|event| there.lines().any(|line| line == *event))
        .collect();
    // The cleaner shader came with 6.16.
    assert_eq!(expected.len(), if kernel == "7.x" { 5 } else { 4 }, "{there}");
    let report = record(&mut vm);
    println!("{} {:?}", vm.release(), watched(&report));
    assert_eq!(watched(&report), expected);
    assert_eq!(report["driver_events"]["total"], 0, "watched, and none came");
    assert_eq!(report["losses"]["total"], 0);
    assert!(report["warnings"].as_array().unwrap().is_empty(), "{report}");
}

fn without_the_driver_they_are_unknown(kernel: &str) {
    let mut vm = boot(kernel, &[]);
    let report = record(&mut vm);
    assert_eq!(watched(&report), [""; 0]);
    assert!(report["driver_events"]["total"].is_null(), "{report}");
}
