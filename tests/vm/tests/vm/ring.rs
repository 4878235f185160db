//! Jobs of the real DRM scheduler and ioctls of the real /dev/kfd, compared with what the programs themselves count.

use serde_json::Value;

use crate::machine::{Machine, TTM_CLEAR_BUFFER, json};

fn ring<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rings = report["ring_jobs"]["rings"].as_array().unwrap();
    let found = rings.iter().find(|ring| ring["ring"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {rings:?}"))
}

pub fn jobs_and_ioctls(machine: &mut Machine) {
    let (_, report) = machine.report("", "ring-jobs comp_1.0.0 gfx_0.0.0 -n 5000");
    assert_eq!(report["ring_jobs"]["total"], 10_000);
    assert_eq!(report["ring_jobs"]["traced"], 10_000);
    assert_eq!(report["ring_jobs"]["submitter_unknown"], 0);
    for (name, class) in [("comp_1.0.0", "comp"), ("gfx_0.0.0", "gfx")] {
        let ring = ring(&report, name);
        println!("{} {ring}", machine.vm.release());
        assert_eq!((&ring["jobs"], &ring["traced"]), (&5000.into(), &5000.into()));
        assert_eq!((&ring["class"], &ring["unfinished"]), (&class.into(), &0.into()));
        assert!(ring["queued_ns"]["p50"].is_u64() && ring["running_ns"]["p50"].is_u64());
        assert_eq!(ring["device"], "drm-sched-mock");
    }

    // Another process's jobs, with the driver's own mark, do not belong to any traced process.
    let others = format!("sh -c 'ring-jobs sdma0 -n 50 --client {TTM_CLEAR_BUFFER} > /dev/null; true'");
    let (_, report) = machine.report("--no-follow", &others);
    let sdma = ring(&report, "sdma0");
    assert_eq!((&sdma["jobs"], &sdma["traced"]), (&50.into(), &0.into()), "{report}");
    // Linux 6.1 does not report clients of jobs.
    let reason = if machine.kernel == "6.1" {
        "untold"
    } else {
        "ttm-clear-buffer"
    };
    assert_eq!(sdma["by_reason"][reason], 50, "{sdma}");

    ioctls(machine);
}

/// Checks every ioctl of the program, with its success or failure, and the same calls inside the driver.
fn ioctls(machine: &mut Machine) {
    if machine.kernel == "7.x" {
        println!("not checked: without a GPU this kernel's /dev/kfd can't be opened");
        return;
    }
    let (output, report) = machine.report("", "kfd-ioctls");
    let printed = json(&output);
    let calls = printed["ioctls"].as_array().unwrap_or_else(|| panic!("{printed}"));
    let failed = calls.iter().filter(|call| call["ret"].as_i64() < Some(0)).count();
    let by_name = report["ioctls"]["by_name"].as_object().unwrap();
    let sum = |what: &str| by_name.values().map(|calls| calls[what].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (sum("count"), sum("errors")),
        (calls.len() as u64, failed as u64),
        "{printed} {report}"
    );
    let inside = &report["driver_calls"]["by_function"]["kfd_ioctl"];
    println!("{} kfd_ioctl: {inside}", machine.vm.release());
    assert_eq!(inside["traced"], calls.len(), "{report}");
}

pub fn without_a_scheduler_rings_are_unknown(machine: &mut Machine) {
    let (_, report) = machine.report("", "true");
    assert!(report["ring_jobs"]["total"].is_null() && report["dispatches"]["by_path"]["ring"].is_null());
}
