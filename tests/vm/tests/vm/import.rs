//! The text of ftrace and files of trace-cmd, imported, and a recording of the same jobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracer_core::tables::{Fact, RingJob, Table};
use tracer_e2e::place;
use tracer_store::Trace;
use tracer_vm::Kernel;

use crate::machine::Machine;

/// Jobs by ring and number.
pub type Jobs = BTreeMap<(String, u64), RingJob>;

/// Jobs on each of the rings.
const JOBS: usize = 200;

/// Returns the jobs of a trace, by ring and number: that of the job up to Linux 6.16, its fence's sequence number from 6.17 on.
pub fn jobs(trace: &Path) -> Jobs {
    let read = Trace::open(trace).unwrap();
    assert!(read.manifest().complete);
    assert_eq!(read.manifest().losses, BTreeMap::new());
    let mut jobs = BTreeMap::new();
    for fact in read.facts(&[Table::RingJobs]).unwrap() {
        let Fact::RingJob(job) = fact.unwrap() else { continue };
        let number = job.job_id.or(job.seqno).unwrap();
        assert!(jobs.insert((job.ring.clone().unwrap(), number), job).is_none(), "twice");
    }
    jobs
}

/// Returns what does not depend on who recorded it: each reads the time and the queue's length a moment apart. Up to Linux 6.16 the
/// text lacks what tracer's programs read from the fence and the scheduler.
pub fn known(job: &RingJob, is_old: bool) -> RingJob {
    let mut known = RingJob {
        time_ns: 0,
        submit_ns: None,
        run_ns: None,
        done_ns: None,
        queued: None,
        ..job.clone()
    };
    if is_old {
        (known.context, known.seqno) = (None, None);
        (known.device, known.client_id, known.reason) = (None, None, None);
    }
    known
}

/// Checks that each step was seen by both before the next one was seen by either. ftrace writes microseconds.
fn steps_follow_each_other(one: &RingJob, other: &RingJob) {
    let steps = |job: &RingJob| {
        let steps = [job.submit_ns, job.run_ns, job.done_ns];
        steps.map(|step| step.unwrap_or_else(|| panic!("a step is missing: {one:?} {other:?}")))
    };
    for (this, that) in [(one, other), (other, one)] {
        let (this, that) = (steps(this), steps(that));
        assert!(
            this[0] <= that[1] + 1000 && this[1] <= that[2] + 1000,
            "{one:?} {other:?}"
        );
    }
}

pub fn the_text_of_ftrace_has_the_jobs_of_a_recording(machine: &mut Machine) {
    let folder = machine.folder();
    let text = folder.path().join("trace.txt");
    let instance = "/sys/kernel/tracing/instances/import";
    machine.sh(&format!(
        "mkdir {instance}; cd {instance}; echo mono > trace_clock; echo 1 > options/record-tgid; echo 8192 > buffer_size_kb; \
         echo 1 > events/gpu_scheduler/enable"
    ));
    let live = folder.path().join("live.trace");
    // A recording that is repeated begins with an empty buffer.
    let line = format!(
        "echo > {instance}/trace; tracer record -o {} -- ring-jobs comp_1.0.0 gfx_0.0.0 sdma0 -n {JOBS}",
        live.display()
    );
    machine.recorded(&line, &live);
    machine.sh(&format!(
        "echo 0 > {instance}/events/gpu_scheduler/enable; cat {instance}/trace > {}; rmdir {instance}",
        text.display()
    ));
    let trace = import(&text, folder.path());
    let (live, imported) = (jobs(&live), jobs(&trace));
    println!("{}: {} jobs of text", machine.vm.release(), imported.len());
    are_the_same(&imported, &live, machine.kernel != "7.x");
    assert!(imported.values().all(|job| job.pid.is_some()));
}

/// Each format that trace-cmd writes: the older one, and the newer one with and without compression. The records are taken from the
/// kernel's buffers in the end: on 6.1, `trace-cmd record`, which takes them all the time, lost some without a word.
pub fn files_of_trace_cmd_have_the_jobs_of_a_recording(machine: &mut Machine) {
    let folder = machine.folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let trace_cmd = Kernel::trace_cmd().unwrap().display().to_string();
    machine.sh(&format!("{trace_cmd} start -b 8192 -C mono -e gpu_scheduler"));
    let live = folder.path().join("live.trace");
    // A recording that is repeated begins with an empty buffer.
    let line = format!(
        "echo > /sys/kernel/tracing/trace; tracer record -o {} -- ring-jobs comp_1.0.0 gfx_0.0.0 sdma0 -n {JOBS}",
        live.display()
    );
    machine.recorded(&line, &live);
    let mut live = jobs(&live);
    // Records name their threads only.
    live.values_mut().for_each(|job| job.pid = None);
    let (extracted, text) = (at("extracted.dat"), at("report.txt"));
    machine.sh(&format!(
        "cd {}; {trace_cmd} stop; {trace_cmd} extract -o {extracted}; {trace_cmd} reset; {trace_cmd} report -t {extracted} > {text}",
        folder.path().display()
    ));
    let reported = jobs(&import(text.as_ref(), folder.path()));
    for options in [
        "--file-version 6",
        "--file-version 7",
        "--file-version 7 --compression none",
    ] {
        let file = at("trace.dat");
        machine.sh(&format!("{trace_cmd} convert {options} -i {extracted} -o {file}"));
        // The version follows the first ten bytes.
        let version = std::fs::read(&file).unwrap()[10];
        assert_eq!(version, if options.contains("version 6") { b'6' } else { b'7' });
        let imported = jobs(&import(file.as_ref(), folder.path()));
        println!(
            "{}: {} jobs of trace.dat {options}",
            machine.vm.release(),
            imported.len()
        );
        // trace-cmd's own text has the same, to the nanosecond.
        assert_eq!(imported, reported);
        are_the_same(&imported, &live, machine.kernel != "7.x");
    }
}

/// Imports a file, and returns the trace.
pub fn import(file: &Path, folder: &Path) -> PathBuf {
    let trace = folder.join("t.trace");
    let output = Command::new(place::programs().join("tracer"))
        .args(["import", "--overwrite", "-o"])
        .args([&trace, file])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", file.display());
    trace
}

fn are_the_same(imported: &Jobs, live: &Jobs, is_old: bool) {
    assert_eq!(live.len(), 3 * JOBS);
    assert_eq!(imported.keys().collect::<Vec<_>>(), live.keys().collect::<Vec<_>>());
    for (key, live) in live {
        let imported = &imported[key];
        assert_eq!(known(imported, false), known(live, is_old));
        assert!(imported.queued.is_some());
        steps_follow_each_other(imported, live);
    }
}
