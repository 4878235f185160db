//! Everything at once in one recording: AMD's runtime on a simulated GPU, jobs of the mock on the kernel's scheduler, and ioctls to
//! the real /dev/kfd. Each is compared with its own truth.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use tracer_core::{
    backend::Backend,
    tables::{DriverCall, Fact, Ioctl, RingJob},
};
use tracer_e2e::{
    compare,
    scenario::{Run, Scenario},
};

use crate::machine::{Machine, quoted, read_json};

const JOBS: usize = 500;

pub fn all_that_is_traced_at_once_equals_its_truth(machine: &mut Machine) {
    let (run, jobs, calls) = record(machine, "--backend ebpf --detail full");
    println!("{}: {:?}", machine.kernel, compare::all(&run));
    ring_jobs(&run, &jobs);
    ioctls(&run, &calls);
    driver_calls(&run, &calls, &machine.kernel);
}

/// Without eBPF.
pub fn all_that_perf_captures_equals_its_truth(machine: &mut Machine) {
    without_ebpf(machine, Backend::Perf);
}

/// Without perf events, too.
pub fn all_that_ftrace_captures_equals_its_truth(machine: &mut Machine) {
    without_ebpf(machine, Backend::Ftrace);
}

fn without_ebpf(machine: &mut Machine, backend: Backend) {
    let (run, jobs, calls) = record(machine, &format!("--backend {backend}"));
    println!(
        "{} by {backend}: {:?}",
        machine.kernel,
        compare::without_ebpf(&run, backend)
    );
    ring_jobs(&run, &jobs);
    ioctls(&run, &calls);
}

/// Records everything at once. Returns also what the jobs' program, and that of the ioctls, printed.
fn record(machine: &mut Machine, options: &str) -> (Run, Value, Value) {
    let dir = machine.folder();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let scenario = Scenario::new("trixie", "gfx1100", &["mixed"]);
    // On 7.x, /dev/kfd cannot be opened without a GPU. The program's exit code reports that.
    let traced = format!(
        "ring-jobs comp_1.0.0 sdma0 -n {JOBS} > {} & {{ kfd-ioctls > {} || test $? = 2; }} & {}; wait",
        at("jobs.json"),
        at("calls.json"),
        quoted(&scenario.simulated(dir.path())),
    );
    let script = at("all.sh");
    std::fs::write(&script, traced).unwrap();
    let line = format!("tracer record {options} -o {} -- sh -e {script}", at("t.trace"));
    machine.recorded(&line, at("t.trace").as_ref());
    let (jobs, calls) = (
        read_json(at("jobs.json").as_ref()),
        read_json(at("calls.json").as_ref()),
    );
    // The machine's output has what the command printed; the files are here.
    let done = Command::new("true").output().unwrap();
    let run = Run::read(dir, done);

    assert_eq!(run.did()["results"], "ok");
    (run, jobs, calls)
}

fn facts<'a, T>(run: &'a Run, of: impl Fn(&'a Fact) -> Option<&'a T>) -> Vec<&'a T> {
    run.facts.iter().filter_map(of).collect()
}

/// Checks that each job occurs once, of that process and thread, submitted, run and completed in this order.
fn ring_jobs(run: &Run, truth: &Value) {
    let traced = facts(run, |fact| match fact {
        Fact::RingJob(job) => Some(job),
        _ => None,
    });
    for ring in ["comp_1.0.0", "sdma0"] {
        let jobs: Vec<&&RingJob> = traced.iter().filter(|job| job.ring.as_deref() == Some(ring)).collect();
        assert_eq!(jobs.len(), JOBS, "{ring}");
        for job in &jobs {
            assert_eq!((job.pid.map(Value::from), job.tid.map(Value::from), job.traced), {
                (Some(truth["pid"].clone()), Some(truth["tid"].clone()), Some(true))
            });
            let (submit, run, done) = (job.submit_ns.unwrap(), job.run_ns.unwrap(), job.done_ns.unwrap());
            assert!(submit <= run && run <= done, "{job:?}");
        }
        let counted = |when: &str| {
            let rings = truth[when].as_array().unwrap();
            let found = rings.iter().find(|entry| entry["name"] == ring).unwrap();
            found["done"].as_u64().unwrap()
        };
        assert_eq!(counted("after") - counted("before"), JOBS as u64);
    }
    assert_eq!(traced.len(), 2 * JOBS, "and no job of anybody else");
    // Records of the old events have addresses of fences, which are used again.
    let identified = |job: &&RingJob| Some((job.context?, job.seqno?));
    let fences: BTreeSet<_> = traced.iter().filter_map(identified).collect();
    let is_old = traced.iter().all(|job| job.context.is_none());
    let by_ebpf = run.trace.manifest().backend == Some(Backend::Ebpf);
    assert!(
        fences.len() == 2 * JOBS || !by_ebpf && is_old,
        "the joins are one to one: {}",
        fences.len()
    );
}

/// Checks the calls of the program, in its order: command, result, and the bytes that were returned.
fn ioctls(run: &Run, truth: &Value) {
    let own = facts(run, |fact| match fact {
        Fact::Ioctl(ioctl) if truth["pid"] == ioctl.pid => Some(ioctl),
        _ => None,
    });
    let calls = truth["ioctls"].as_array().unwrap();
    let fields = |ioctl: &&Ioctl| (u64::from(ioctl.cmd), ioctl.ret.unwrap());
    let made = |call: &Value| (call["cmd"].as_u64().unwrap(), call["ret"].as_i64().unwrap());
    assert_eq!(
        own.iter().map(fields).collect::<Vec<_>>(),
        calls.iter().map(made).collect::<Vec<_>>()
    );
    for (ioctl, call) in own.iter().zip(calls) {
        // Bits 31 and 30 of a command give the direction of its argument.
        let bytes = ioctl
            .arg_out
            .as_deref()
            .filter(|_| ioctl.cmd >> 31 == 1 && ioctl.ret == Some(0));
        if let Some(bytes) = bytes {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(call["out"].as_str().unwrap(), hex, "{ioctl:?}");
        }
    }
}

/// Checks the same calls inside the driver. Calls to the simulated device never reach it.
fn driver_calls(run: &Run, truth: &Value, kernel: &str) {
    let inside = facts(run, |fact| match fact {
        Fact::DriverCall(call) if call.function == "kfd_ioctl" => Some(call),
        _ => None,
    });
    let results = |call: &&DriverCall| i64::from(call.ret);
    let made = |call: &Value| call["ret"].as_i64().unwrap();
    let calls = truth["ioctls"].as_array().unwrap();
    assert_eq!(calls.is_empty(), kernel == "7.x");
    assert_eq!(
        inside.iter().map(results).collect::<Vec<_>>(),
        calls.iter().map(made).collect::<Vec<_>>()
    );
    assert!(inside.iter().all(|call| truth["pid"] == call.pid));
    owners(run, truth, kernel);
}

/// Checks the arguments of handlers, which run although there is no GPU: the process that they are called for. No function that
/// has a queue as its argument runs without a GPU.
fn owners(run: &Run, truth: &Value, kernel: &str) {
    let handlers = [
        "kfd_ioctl_create_queue",
        "kfd_ioctl_destroy_queue",
        "kfd_ioctl_update_queue",
    ];
    let inside = facts(run, |fact| match fact {
        Fact::DriverCall(call) if handlers.contains(&call.function.as_str()) => Some(call),
        _ => None,
    });
    assert_eq!(inside.is_empty(), kernel == "7.x");
    for call in inside {
        assert_eq!(call.owner.map(Value::from), Some(truth["pid"].clone()), "{call:?}");
        assert!(call.pasid.is_some_and(|pasid| pasid > 0), "{call:?}");
        let of_queue = (call.doorbell_index, &call.queue_type, call.queue_id);
        assert_eq!(of_queue, (None, &None, None), "{call:?}");
    }
}
