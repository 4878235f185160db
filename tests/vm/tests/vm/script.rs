//! The script of `tracer record --script`, run by the machine's plain sh, and its output, imported.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;
use tracer_core::tables::{Dispatch, Fact, Table};
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario},
};
use tracer_store::Trace;

use crate::import::{import, jobs, known};
use crate::machine::{Machine, quoted, repeated};

const SUITE: &str = "trixie";
const JOBS: usize = 200;

/// Prints the script for the runtime that the scenarios use.
fn print(folder: &Path) -> PathBuf {
    let library = place::rootfs(SUITE).join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    let output = Command::new(place::programs().join("tracer"))
        .args(["record", "--script", "--library"])
        .arg(library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = folder.join("capture.sh");
    std::fs::write(&script, output.stdout).unwrap();
    script
}

/// Runs a command under the script, with `tracer` words before it, and imports what it wrote. Nothing of it may be left in tracefs.
fn capture(machine: &mut Machine, dir: TempDir, before: &str, command: &str) -> Run {
    let at = |name: &str| dir.path().join(name).display().to_string();
    let script = print(dir.path());
    let (inner, text) = (at("inner.sh"), at("out.ftrace"));
    std::fs::write(&inner, command).unwrap();
    machine.sh(&format!("{before} sh {} -o {text} sh -e {inner}", script.display()));
    assert_eq!(left(machine), "");
    import(text.as_ref(), dir.path());
    let done = Output {
        status: Default::default(),
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    let run = Run::read(dir, done);
    assert_eq!(
        run.trace.manifest().capabilities,
        ["doorbells", "ioctls", "kernel_rings", "packets"]
    );
    run
}

/// Lists what is left in tracefs.
fn left(machine: &mut Machine) -> String {
    let listed = machine.sh("cd /sys/kernel/tracing; cat dynamic_events; ls instances");
    listed.stdout_text()
}

/// Returns dispatches by process, write pointer of the queue, and index.
fn dispatches(trace: &Trace) -> BTreeMap<(u32, u64, u64), Dispatch> {
    let facts: Vec<Fact> = trace.facts(&Table::ALL).unwrap().map(Result::unwrap).collect();
    let mut pointers = BTreeMap::new();
    for fact in &facts {
        if let Fact::Queue(queue) = fact {
            pointers.insert(queue.queue, queue.write_pointer);
        }
    }
    let mut found = BTreeMap::new();
    for fact in facts {
        let Fact::Dispatch(row) = fact else { continue };
        let key = (row.pid, pointers[&row.queue], row.index);
        assert!(found.insert(key, row).is_none(), "{key:?} twice");
    }
    found
}

/// Returns what both know of a dispatch. The text has microseconds, and no code objects, which name the kernels.
fn common(row: &Dispatch) -> Dispatch {
    Dispatch {
        queue: 0,
        time_ns: 0,
        kernel: None,
        reserve_ns: None,
        unreserved_ns: None,
        ..row.clone()
    }
}

/// Runs jobs and dispatches under the script and a recording at once. Returns what the script captured, and the recording.
fn capture_and_record(machine: &mut Machine) -> (Run, PathBuf) {
    let dir = machine.folder();
    let scenario = Scenario::new(SUITE, "gfx1100", &["mixed"]);
    let command = format!(
        "ring-jobs comp_1.0.0 gfx_0.0.0 sdma0 -n {JOBS} > /dev/null & {}; wait",
        quoted(&scenario.simulated(dir.path()))
    );
    let live = dir.path().join("live.trace");
    let record = format!("tracer record -o {} --", live.display());
    (capture(machine, dir, &record, &command), live)
}

pub fn a_printed_script_captures_what_a_recording_has(machine: &mut Machine) {
    let (run, live) = repeated(|| capture_and_record(machine));
    let compared = compare::of_script(&run);
    println!("{}: {compared:?}", machine.kernel);
    assert!(
        compared.dispatches > 3 && compared.by_body == 0 && compared.ioctls > 100,
        "{compared:?}"
    );

    let recorded = Trace::open(&live).unwrap();
    let (theirs, ours) = (dispatches(&recorded), dispatches(&run.trace));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (key, ours) in &ours {
        let theirs = &theirs[key];
        assert_eq!(common(ours), common(theirs));
        // By the same clock. A busy computer stops its virtual machines between the one's record and the other's.
        assert!(
            ours.time_ns.abs_diff(theirs.time_ns) < 1_000_000_000,
            "{ours:?} {theirs:?}"
        );
    }
    let (ours, theirs) = (jobs(&run.dir.path().join("t.trace")), jobs(&live));
    assert_eq!(ours.len(), 3 * JOBS);
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (key, ours) in &ours {
        assert_eq!(known(ours, false), known(&theirs[key], machine.kernel != "7.x"));
    }
}

/// A ring that wraps around, threads that share one, queues at addresses of former ones, and batches.
pub fn each_workload_equals_its_truth(machine: &mut Machine) {
    if machine.kernel == "7.x" {
        println!("not checked: captures by a former script hung this kernel (docs/limitations.md)");
        return;
    }
    let workloads: [&[&str]; 5] = [
        &["wrap"],
        &["multi-thread", "--threads", "4", "-n", "200"],
        &["barriers"],
        &["churn", "--queues", "8"],
        &["batch", "--packets", "8", "-n", "20"],
    ];
    for workload in workloads {
        let workload = [workload, &["--pace", "1000"]].concat();
        let compared = compare::of_script(&scenario(machine, &workload));
        println!("{} {workload:?}: {compared:?}", machine.kernel);
        // The device may take the packet of a thread before its doorbell, for that of another thread.
        assert!(compared.by_body == 0 || workload[0] == "multi-thread", "{compared:?}");
    }
    // The script reads eight packets at a doorbell. The others are counted.
    let run = scenario(machine, &["batch", "--packets", "10", "-n", "20", "--pace", "1000"]);
    println!(
        "{}: {:?}",
        machine.kernel,
        compare::of_scripted_batches(&run, 2 * 20 / 10)
    );
}

fn scenario(machine: &mut Machine, workload: &[&'static str]) -> Run {
    let dir = machine.folder();
    let command = quoted(&Scenario::new(SUITE, "gfx1100", workload).simulated(dir.path()));
    // The text shows that the scheduler's events were on only if there is one.
    let run = capture(
        machine,
        dir,
        "",
        &format!("ring-jobs sdma0 -n 1 > /dev/null; {command}"),
    );
    assert_eq!(run.did()["results"], "ok");
    run
}

/// The script's own guardian removes what it defined.
pub fn a_killed_script_leaves_nothing(machine: &mut Machine) {
    let dir = machine.folder();
    let (script, text) = (print(dir.path()), dir.path().join("out.ftrace"));
    let begun = format!(
        "sh {} -o {} sleep 20 & script=$!; until grep -q . {1}; do sleep 0.1; done; kill -KILL $script; cat {1}; \
         until [ -z \"$(cat /sys/kernel/tracing/dynamic_events; ls /sys/kernel/tracing/instances)\" ]; do sleep 0.1; done",
        script.display(),
        text.display(),
    );
    let output = machine.sh(&begun);
    assert!(output.stdout_text().contains("doorbells"), "{}", output.stdout_text());
    assert_eq!(left(machine), "");
}
