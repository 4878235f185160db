//! The basis of the other tests: commands, the real /dev/kfd, and jobs on the kernel's own scheduler.

use std::time::Duration;

use serde_json::Value;
use tracer_vm::{Command, Module};

use tracer_e2e::scenario::report;

use crate::machine::{Machine, json, read_json};

/// Returns a ring's counter of drm-sched-mock.
fn count(rings: &Value, ring: &str, counter: &str) -> u64 {
    let rings = rings.as_array().unwrap();
    let found = rings.iter().find(|entry| entry["name"] == ring).unwrap();
    found[counter].as_u64().unwrap()
}

/// Tests output, exit codes, working directory, shared folders, and a command that hangs, which stops the machine.
pub fn commands(machine: &mut Machine) {
    let shared = machine.folder();
    let output = machine
        .vm
        .run(&Command::new("sh").args(["-c", "pwd; echo error >&2; exit 7"]))
        .unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(output.stdout_text().trim_end(), here.to_string_lossy());
    assert_eq!((output.stderr_text().as_str(), output.code), ("error\n", 7));
    assert_eq!(machine.run("kill -9 $$").code, 128 + 9);
    let large = machine.sh("head -c 3000000 /dev/zero");
    assert_eq!(large.stdout.len(), 3_000_000);
    let missing = machine.vm.run(&Command::new("/nosuch")).unwrap_err();
    assert!(format!("{missing:#}").contains("cannot start /nosuch"), "{missing:#}");

    // Written files stay in the machine, except in the shared folder.
    let kept = shared.path().join("kept").display().to_string();
    machine.sh(&format!(
        "echo text >{kept}; echo lost >/tracer-vm-lost; test -s /tracer-vm-lost"
    ));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "text\n");
    assert!(!std::path::Path::new("/tracer-vm-lost").exists());

    let hangs = Command::new("sleep").arg("1000").timeout(Duration::from_secs(1));
    let error = machine.vm.run(&hangs).unwrap_err();
    assert!(format!("{error:#}").contains("took longer than 1 s"), "{error:#}");
}

/// Neither gpu-sched nor amdgpu is loaded, so this kernel has no DRM scheduler.
pub fn there_is_no_driver(machine: &mut Machine) {
    machine.sh("test ! -e /sys/kernel/tracing/events/gpu_scheduler; test ! -e /dev/kfd");
}

/// The code for stacks is in the programs only where a recording asks for it, and old kernels allow little more than the programs need
/// without it.
pub fn programs_that_copy_stacks_are_accepted(machine: &mut Machine) {
    // A recording ends with an error if the kernel refuses a program.
    let (output, trace) = machine.record("--stacks", "true");
    assert_eq!((output.code, trace.exists()), (0, true), "{}", output.stderr_text());
}

/// Where the kernel has such links, one serves the entries of all functions of the driver, and one their returns: each probe of its own
/// would be a perf event, which the kernel removes one by one. Debian's 6.1 is built without them (CONFIG_FPROBE).
pub fn programs_and_links_are_those_of_the_kernel(machine: &mut Machine) {
    // The events that tracer has open, whichever of its processes has them.
    let count = r#"for pid in $(pidof tracer); do ls -l /proc/$pid/fd | grep -cE "perf_event|bpf.link"; done | sort -n | tail -n 1"#;
    let (output, trace) = machine.record("", &format!("sh -c '{count}'"));
    let events: usize = output.stdout_text().trim().parse().unwrap();
    let probes = report(&trace)["probes"].as_array().unwrap().clone();
    let functions = probes.iter().filter(|probe| probe["family"] == "driver").count();
    assert!(functions > 10, "{probes:?}");
    assert!(probes.iter().all(|probe| probe["attached"] == true), "{probes:?}");
    let share = machine.kernel != "6.1";
    assert_eq!(events < functions, share, "{events} perf events, {functions} functions");
    assert!(
        share || events > 2 * functions,
        "{events} perf events, {functions} functions"
    );
    // Linux 7 preempts programs. There, events of system calls have two programs each, and events of processes have no raw ones.
    let preempts = machine.kernel == "7.x";
    let of = |symbol| probes.iter().filter(move |probe| probe["symbol"] == symbol);
    assert_eq!(of("syscalls:sys_enter_ioctl").count(), if preempts { 2 } else { 1 });
    let exits: Vec<_> = of("sched:sched_process_exit").map(|probe| &probe["resolver"]).collect();
    let raw = if preempts { Value::Null } else { "BTF".into() };
    assert!(
        !exits.is_empty() && exits.iter().all(|resolver| **resolver == raw),
        "{exits:?}"
    );
    // The C library is the only file that this program maps itself: one pause, also where two programs see the mapping.
    let (_, trace) = machine.record("--api hsa", "true");
    let pauses = &read_json(&trace.join("manifest.json"))["pauses"];
    assert_eq!(pauses["count"], 1, "{pauses}");
}

/// Every job of the mock causes one event of each kind, the first in the context of the process that requested it.
pub fn jobs_are_counted_and_traced(machine: &mut Machine) {
    machine.sh("echo 1 >/sys/kernel/tracing/events/gpu_scheduler/enable");
    let report = json(&machine.sh("ring-jobs -n 5 --us 500 --client 42 comp_1.0.0"));
    let dependent = json(&machine.sh("ring-jobs -n 2 --dependent --error 5 comp_1.1.0 sdma0"));
    assert_eq!(count(&report["after"], "comp_1.0.0", "done"), 5);
    assert_eq!(count(&dependent["after"], "sdma0", "failed"), 2);

    let trace = machine.sh("cat /sys/kernel/tracing/trace").stdout_text();
    machine.sh("echo 0 >/sys/kernel/tracing/events/gpu_scheduler/enable; echo >/sys/kernel/tracing/trace");
    let is = |line: &str, names: [&str; 2]| names.iter().any(|name| line.contains(&format!(" {name}:")));
    let events = |names| trace.lines().filter(move |line| is(line, names));
    assert_eq!(events(["drm_run_job", "drm_sched_job_run"]).count(), 9, "{trace}");
    assert_eq!(
        events(["drm_sched_process_job", "drm_sched_job_done"]).count(),
        9,
        "{trace}"
    );
    let submits: Vec<&str> = events(["drm_sched_job", "drm_sched_job_queue"]).collect();
    assert_eq!(submits.len(), 9, "{trace}");
    // The kernel does not remember the name of every thread that it traced: it may print `<...>`.
    let submitter = format!("-{} ", report["tid"]);
    assert_eq!(
        submits.iter().filter(|line| line.contains(&submitter)).count(),
        5,
        "{trace}"
    );
    assert_eq!(machine.run("ring-jobs nosuch").code, 1);
}

/// Jobs of a killed process are freed without being run, and the module can be unloaded.
pub fn a_killed_submitter_leaves_nothing(machine: &mut Machine) {
    machine.sh("ring-jobs -n 100000 --us 1000 --no-wait sdma0 & sleep 1; kill -9 $!; wait $! || true");
    let counts = json(
        &machine.sh("for i in $(seq 100); do sleep 0.2; c=$(cat /dev/drm-sched-mock); \
         echo \"$c\" | grep -q 'sdma0\",\"submitted\":\\([0-9]*\\),.*\"freed\":\\1}' && break; done; echo \"$c\""),
    );
    let of = |counter| count(&counts["rings"], "sdma0", counter);
    assert!(of("run") < of("submitted") && of("done") == of("run"), "{counts}");
    assert_eq!(of("freed"), of("submitted"), "{counts}");
    machine.vm.unload(Module::Mock).unwrap();
    let log = machine.sh("dmesg").stdout_text();
    assert!(
        !log.contains("WARNING") && !log.contains("BUG") && !log.contains("jobs freed"),
        "{log}"
    );
}

/// Tests the driver's results without a GPU. From 7.x on, the driver refuses to open the device.
pub fn kfd_answers(machine: &mut Machine) {
    let output = machine.run("kfd-ioctls");
    let report = json(&output);
    if machine.kernel == "7.x" {
        assert_eq!((output.code, &report["open"]), (2, &Value::from(libc::EINVAL)));
        return;
    }
    let ioctls = report["ioctls"].as_array().unwrap();
    let results: Vec<_> = ioctls
        .iter()
        .map(|call| (call["name"].as_str().unwrap(), call["ret"].as_i64().unwrap()))
        .collect();
    let expected = [
        ("GET_VERSION", 0),
        ("GET_CLOCK_COUNTERS", 0),
        ("CREATE_EVENT", 0),
        ("CREATE_QUEUE", -libc::EINVAL),
        ("DESTROY_QUEUE", -libc::EINVAL),
        ("UNKNOWN", -libc::ENOTTY),
        ("GET_CLOCK_COUNTERS", -libc::EFAULT),
    ];
    assert_eq!(results, expected.map(|(name, ret)| (name, i64::from(ret))));
}
