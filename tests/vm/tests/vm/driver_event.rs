//! amdgpu's own trace events on each of Debian's kernels: the programs load, and are attached to every event that the kernel has.
//!
//! Without a GPU none of the events ever occurs, and nothing here simulates one. `tests/e2e/tests/driver_event.rs` tests how the
//! programs read an event's record, with kernel events that do occur.

use serde_json::Value;

use crate::machine::Machine;

/// The events that tracer knows.
const EVENTS: [&str; 5] = [
    "amdgpu_bo_move",
    "amdgpu_cleaner_shader",
    "amdgpu_cs_ioctl",
    "amdgpu_sched_run_job",
    "amdgpu_vm_flush",
];

/// Returns the names of the events with a probe, in order. Checks that every such probe is attached.
fn watched(report: &Value) -> Vec<String> {
    let probes = report["probes"].as_array().unwrap();
    let of_family: Vec<&Value> = probes.iter().filter(|p| p["family"] == "driver_event").collect();
    assert!(of_family.iter().all(|p| p["attached"] == true), "{of_family:?}");
    let name = |probe: &&Value| probe["symbol"].as_str().unwrap().replace("amdgpu:", "");
    let mut names: Vec<String> = of_family.iter().map(name).collect();
    names.sort();
    names
}

pub fn every_event_that_there_is_is_watched(machine: &mut Machine) {
    let there = machine.sh("ls /sys/kernel/tracing/events/amdgpu").stdout_text();
    let expected: Vec<&str> = EVENTS
        .into_iter()
        .filter(|event| there.lines().any(|line| line == *event))
        .collect();
    // The cleaner shader was added in 6.16.
    assert_eq!(expected.len(), if machine.kernel == "7.x" { 5 } else { 4 }, "{there}");
    let (_, report) = machine.report("", "true");
    println!("{} {:?}", machine.vm.release(), watched(&report));
    assert_eq!(watched(&report), expected);
    assert_eq!(report["driver_events"]["total"], 0, "watched, and none came");
    assert!(report["warnings"].as_array().unwrap().is_empty(), "{report}");
}

pub fn without_the_driver_they_are_unknown(machine: &mut Machine) {
    let (_, report) = machine.report("", "true");
    assert_eq!(watched(&report), [""; 0]);
    assert!(report["driver_events"]["total"].is_null(), "{report}");
}
