//! Containers start and exit, each with its own runtime. tracer releases what is no longer used.

use std::{fs, path::Path};

use tracer_core::tables::Fact;
use tracer_e2e::{
    compare, place,
    running::{Program, Recorded, Recorder, wait_for},
    scenario::{Run, Scenario, folder},
    truth::Truth,
};
use tracer_faults::{Attack, tries};

/// The number of dispatches of a program.
const COUNT: &str = "300";

/// Counts the links and events of eBPF programs that a process holds.
fn probes(pid: u32) -> usize {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("the recorder runs");
    let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| {
            let target = target.to_string_lossy();
            target.contains("bpf_link") || target.contains("bpf-link") || target.contains("perf_event")
        })
        .count()
}

/// Runs a program with that runtime until it exits. Returns what the device saw.
fn run(library: &Path) -> Truth {
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", COUNT]);
    let dir = folder();
    let mut words = scenario.simulated_with(dir.path(), &[library.parent().expect("a folder")]);
    words.extend(["--library".into(), library.into()]);
    let mut program = Program::start(dir, &words);
    assert!(program.wait().success());
    Truth::read(&program.dir.path().join("truth.jsonl"))
}

/// Fails unless the trace has every dispatch of the program in this truth log.
fn is_whole(run: &Run, truth: &Truth) -> Result<(), String> {
    let pid = truth.queues.first().expect("a queue").pid;
    let of_program = |fact: &&Fact| matches!(fact, Fact::Dispatch(dispatch) if dispatch.pid == pid);
    let count = run.facts.iter().filter(of_program).count() as u64;
    if count == truth.dispatches() && count > 0 {
        Ok(())
    } else {
        Err(format!("process {pid}: {count} of {} dispatches", truth.dispatches()))
    }
}

/// A runtime's probes are removed when no process has used it for a while, and installed again for the next process. The probes of
/// a runtime in use stay.
fn come_and_go() -> Result<(), String> {
    let containers = folder();
    let library = containers.path().join("libhsa-runtime64.so.1");
    let original = place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    fs::copy(original, &library).expect("it can be copied");
    let traces = folder();
    let trace = traces.path().join("t.trace");
    let recorder = Recorder::start(&trace, &["-v", "-a"].map(str::to_owned));
    recorder.hears("watching   every process");
    let mut other = Program::steady("trixie", "gfx1100", &[]);
    other.goes_on(50);
    let before = probes(recorder.pid());
    let first = run(&library);
    let with = probes(recorder.pid());
    if with <= before {
        return Err(format!("no probe for the runtime: {before} before, {with} with it"));
    }
    wait_for("the end of its probes", || {
        (probes(recorder.pid()) == before).then_some(())
    });
    let second = run(&library);
    let again = probes(recorder.pid());
    if again != with {
        return Err(format!("{with} at first, {again} when it came again"));
    }
    other.goes_on(50);
    other.stop();
    assert!(other.wait().success());
    let Recorded { output, trace } = recorder.interrupt().expect_success();
    let mut run = other.read(Recorded { output, trace });
    is_whole(&run, &first)?;
    is_whole(&run, &second)?;
    // The other program's runtime, and one that was used twice.
    let listed = run.trace.manifest().libraries.len();
    if listed != 2 {
        return Err(format!("{listed} libraries are listed"));
    }
    let lost = run.facts.iter().find(|fact| matches!(fact, Fact::Loss(_)));
    if let Some(lost) = lost {
        return Err(format!("{lost:?}"));
    }
    compare::of_machine(&mut run);
    Ok(())
}

#[test]
fn a_runtime_that_nobody_uses_has_no_probes() {
    let mut attack =
        Attack::new("a runtime of its own for a program that comes, ends, and comes again after 20 s, `record -a`");
    for _ in 0..tries(1, 5) {
        attack.count(come_and_go());
    }
    attack.finish();
}
