//! Attaching to programs that already submit: the trace has everything from the first doorbell that is seen on, and nothing from
//! before.

use std::time::{Duration, Instant};

use tracer_core::tables::{Fact, QueueOrigin};
use tracer_e2e::{
    compare, observed,
    running::{Program, Recorder, descendants, state, wait_for},
    scenario::{Run, Scenario, folder},
    verdict::{amiss, rule, verdict},
};
use tracer_store::{State, manifest::Target};

/// Rounds with as many packets as possible, one doorbell each, without a pause.
const BURST: [&str; 2] = ["--round=1024", "--pause=0"];

#[test]
fn from_the_first_doorbell_on_no_gap() {
    let relaxed = [&BURST[..], &["--doorbell-op=relaxed"]].concat();
    let release = [&BURST[..], &["--doorbell-op=screlease"]].concat();
    for (suite, asic, detail, options) in [
        ("bookworm", "gfx90a", "full", &BURST[..]),
        ("trixie", "gfx942", "dispatch", &[]),
        ("sid", "gfx1100", "full", &BURST),
        ("experimental", "gfx942", "full", &relaxed),
        ("experimental", "gfx1100", "dispatch", &release),
    ] {
        let run = Program::steady(suite, asic, options).to_the_end(&["--detail", detail]);
        let found = observed::adopted(&run, true);
        println!("{suite} {detail} {options:?}: {found:?}");
        assert!(found.claimed >= 1000 && found.outside >= 500, "{found:?}");
        let manifest = run.trace.manifest();
        assert!(
            matches!(&manifest.target, Target::Attached { pids } if pids.len() == 1),
            "{manifest:?}"
        );
        assert_eq!((manifest.libraries.len(), manifest.exit), (1, None));
        let name = |fact: &Fact| matches!(fact, Fact::Process(process) if process.comm == "hsa-dispatch");
        assert!(run.facts.iter().any(name), "{:?}", run.facts.last());
        // The names of kernels that were loaded before the attach.
        let named = |kernel: &serde_json::Value| kernel["name"] == "vector_add";
        let kernels = run.report["kernels"].as_array().expect("kernels");
        assert!(kernels.iter().any(named), "{kernels:?}");
        if detail == "full" {
            let dated = |fact: &&Fact| matches!(fact, Fact::Dispatch(d) if d.reserve_ns.is_some());
            // All except those that were being submitted at that moment.
            assert!(run.facts.iter().filter(dated).count() + 32 >= found.claimed);
        }
    }
}

#[test]
fn producers_that_share_a_queue() {
    for (option, threads) in [("--threads=2", 2), ("--threads=6", 6)] {
        let run = Program::steady("trixie", "gfx1100", &[option]).to_the_end(&[]);
        let found = observed::adopted(&run, true);
        println!("{option}: {found:?}");
        // A thread counts a round of 16 after it is complete, so of each thread one round may be before the attach.
        assert!(
            found.claimed >= 1000 - threads * 16 && found.outside >= 500,
            "{found:?}"
        );
    }
}

/// Of a batch that was reserved before the attach, only the packet that its doorbell names is claimed.
#[test]
fn batches_with_one_doorbell() {
    let run = Program::steady("sid", "gfx942", &["--packets=8", "--round=64"]).to_the_end(&[]);
    let found = observed::adopted(&run, true);
    println!("{found:?}");
    assert!(found.claimed >= 900 && found.unclaimed < 64, "{found:?}");
}

/// The recorder also exits in the middle of a burst, and leaves nothing behind. Another recorder finds the same queues.
#[test]
fn a_program_is_left_as_it_was_and_attached_to_again() {
    let program = Program::steady("trixie", "gfx942", &["--threads=2"]);
    let pid = program.pid();
    program.goes_on(100);
    let traces = folder();
    let mut recordings = Vec::new();
    for name in ["a", "b"] {
        let recorder = Recorder::attach(&traces.path().join(name), &[pid], &["--detail", "full"]);
        program.goes_on(500);
        let recorded = recorder.interrupt().expect_success();
        assert!(recorded.said().contains("paused 0 times"), "{}", recorded.said());
        recordings.push(recorded);
        assert_ne!(state(pid), Some('T'));
        // No probe is left in its memory, and it continues to work.
        program.goes_on(500);
    }
    program.stop();
    let second = recordings.pop().expect("two");
    let first = recordings.pop().expect("two");
    let (trace, output) = (first.trace.clone(), first.output.clone());
    let indexes = |run: &Run| -> Vec<u64> {
        let of = |fact: &Fact| match fact {
            Fact::Dispatch(dispatch) => Some(dispatch.index),
            _ => None,
        };
        run.facts.iter().filter_map(of).collect()
    };
    let run = program.read(second);
    let found = observed::adopted(&run, false);
    let seen_again = indexes(&run);
    let again = Run::read_trace(run.dir, &trace, output);
    let before = observed::adopted(&again, false);
    println!("{before:?}, then {found:?}");
    assert!(
        indexes(&again).into_iter().max() < seen_again.into_iter().min(),
        "they overlap"
    );
    for found in [found, before] {
        assert!(found.claimed >= 500 && found.outside >= 1500, "{found:?}");
    }
}

/// The recorder detaches in the middle of a burst, and the coverage of what it recorded is closed each time.
#[test]
fn coverage_is_closed_after_a_detach_in_a_burst() {
    // More dispatches than it submits while five recordings begin and end.
    let endless = [&BURST[..], &["-n=5000000"]].concat();
    let program = Program::steady("trixie", "gfx1100", &endless);
    let pid = program.pid();
    let traces = folder();
    let mut last = None;
    for number in 0..5 {
        program.goes_on(100);
        let trace = traces.path().join(number.to_string());
        let recorder = Recorder::attach(&trace, &[pid], &[]);
        program.goes_on(1500);
        let recorded = recorder.interrupt().expect_success();
        let (_, verdict) = verdict("doorbell-bypass", &trace);
        let coverage = rule(&verdict, "coverage");
        let found = (&coverage["outcome"], &coverage["counts"]["unseen"]);
        assert_eq!(found, (&"pass".into(), &0.into()), "recording {number}: {coverage}");
        last = Some(recorded);
    }
    program.goes_on(100);
    program.stop();
    let found = observed::adopted(&program.read(last.expect("a recording")), false);
    assert!(found.claimed >= 1000 && found.outside >= 500, "{found:?}");
}

#[test]
fn several_processes_until_the_last_of_them_ends() {
    let mut programs =
        [("trixie", "gfx942"), ("sid", "gfx1100")].map(|(suite, asic)| Program::steady(suite, asic, &[]));
    programs.iter().for_each(|program| program.goes_on(100));
    let pids = [programs[0].pid(), programs[1].pid()];
    let traces = folder();
    let recorder = Recorder::attach(&traces.path().join("t"), &pids, &[]);
    programs[0].goes_on(300);
    programs[0].stop();
    assert!(programs[0].wait().success());
    programs[1].goes_on(300);
    programs[1].stop();
    let recorded = recorder.wait().expect_success();
    let (trace, output) = (recorded.trace.clone(), recorded.output.clone());
    let [first, second] = programs;
    let run = second.read(recorded);
    let found = [
        observed::adopted(&first.read(tracer_e2e::running::Recorded { output, trace }), true),
        observed::adopted(&run, true),
    ];
    println!("{found:?}");
    assert!(found.iter().all(|found| found.claimed >= 300), "{found:?}");
    assert_eq!(run.trace.manifest().libraries.len(), 2);
}

/// tracer attaches to a process without a runtime as to any other. A runtime that it loads later has its probes from its first
/// instruction on: nothing is adopted, and everything equals the truth.
#[test]
fn a_runtime_that_is_loaded_later_is_whole() {
    let dir = folder();
    let mut words = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "100"]).simulated(dir.path());
    words.extend(["--wait-for".into(), dir.path().join("go").into_os_string()]);
    let program = Program::start(dir, &words);
    let trace = program.dir.path().join("t.trace");
    let pid = program.pid();
    let recorder = Recorder::start(
        &trace,
        &["--detail".into(), "full".into(), "-p".into(), pid.to_string()],
    );
    assert!(recorder.hears("attached   ").contains("no HSA runtime"));
    program.make("go");
    let run = program.read(recorder.wait().expect_success());
    let compared = compare::all(&run);
    assert!(compared.dispatches >= 100, "{compared:?}");
    let latency = &run.report["doorbells"]["reserve_to_doorbell_ns"];
    assert!(!latency.is_null(), "reserves were traced");
}

/// A program that waits for the GPU rings no doorbell, and then its queues are not in the trace. So tracer says how many it has.
#[test]
fn its_queues_are_counted_before_they_are_found() {
    let program = Program::steady("trixie", "gfx1100", &[]);
    program.goes_on(100);
    let trace = program.dir.path().join("t.trace");
    let recorder = Recorder::start(&trace, &["-p".into(), program.pid().to_string()]);
    let line = recorder.hears("attached   ");
    program.stop();
    let run = program.read(recorder.wait().expect_success());
    let queues = run.truth.queues.iter().filter(|queue| queue.is_aql()).count();
    assert!(queues >= 1, "{queues}");
    let counted = line.split_once(": it has ").map(|(_, rest)| rest.split(' ').next());
    assert_eq!(counted, Some(Some(queues.to_string().as_str())), "{line}");
}

/// Existing children are attached to as well, and new ones are followed.
#[test]
fn children_belong_to_it() {
    let program = Program::steady("sid", "gfx942", &[]);
    program.goes_on(100);
    let trace = program.dir.path().join("t.trace");
    let recorder = Recorder::attach(&trace, &[program.simulator()], &[]);
    program.goes_on(300);
    program.stop();
    let run = program.read(recorder.wait().expect_success());
    let found = observed::adopted(&run, true);
    println!("{found:?}");
    assert!(found.claimed >= 300, "{found:?}");
}

/// Queues created during the recording are complete, whatever the first one is.
#[test]
fn queues_that_come_later_are_no_adopted_ones() {
    let program = Program::steady("trixie", "gfx1100", &["--rounds-a-queue=20"]);
    let run = program.to_the_end(&[]);
    compare::no_losses(&run);
    let mut created = 0;
    for fact in &run.facts {
        let Fact::Queue(queue) = fact else { continue };
        // The last one may have been created too late to be used.
        if queue.origin == QueueOrigin::Created && queue.published > 0 {
            created += 1;
            assert_eq!(
                (queue.first_index, queue.unread, queue.unclaimed),
                (Some(0), 0, None),
                "{queue:?}"
            );
            let truth = run.truth.queues.iter().filter(|truth| {
                Some(truth.queue_id) == queue.queue_id && truth.packets.len() as u64 == queue.published
            });
            assert!(truth.count() > 0, "{queue:?}");
        }
    }
    assert!(created > 1, "{created}");
}

#[test]
fn a_duration_ends_it_and_the_program_goes_on() {
    let program = Program::steady("trixie", "gfx942", &[]);
    program.goes_on(100);
    let trace = program.dir.path().join("t.trace");
    let recorder = Recorder::attach(&trace, &[program.pid()], &["--duration", "100ms"]);
    let recorded = recorder.wait().expect_success();
    program.goes_on(100);
    program.stop();
    let run = program.read(recorded);
    assert_eq!(run.trace.state(), State::Complete);
}

#[test]
fn a_program_that_is_killed_ends_the_recording() {
    let mut program = Program::steady("trixie", "gfx942", &["--threads=3"]);
    program.goes_on(100);
    let (pid, trace) = (program.pid(), program.dir.path().join("t.trace"));
    let recorder = Recorder::attach(&trace, &[pid], &[]);
    program.goes_on(100);
    tracer_e2e::running::signal(pid, libc::SIGKILL);
    let recorded = recorder.wait().expect_success();
    assert_eq!(program.wait().code(), Some(137));
    let trace = tracer_store::Trace::open(&recorded.trace).expect("a trace");
    assert_eq!(trace.state(), State::Complete);
    let facts: Vec<Fact> = trace
        .facts(&tracer_core::tables::Table::ALL)
        .expect("readable")
        .flatten()
        .collect();
    let ended =
        |fact: &Fact| matches!(fact, Fact::Queue(queue) if queue.destroyed_ns.is_some() && queue.dispatches > 0);
    assert!(facts.iter().any(ended));
}

/// The verdict covers what was watched, and says so.
#[test]
fn what_came_before_is_not_judged() {
    let run = Program::steady("sid", "gfx1100", &["--packets=4"]).to_the_end(&["--detail", "full"]);
    let found = observed::adopted(&run, true);
    let (_, judged) = verdict("mes-bypass", run.trace.dir());
    let open = amiss(&judged);
    let coverage = rule(&judged, "coverage");
    // When a queue is destroyed whose creation tracer did not see, no thread of the process can examine it.
    let unwatched = coverage["sentence"].to_string().contains("tracer did not watch");
    let known = |name: &String| name == "no-ring" || (name == "coverage" && unwatched);
    assert!(open.keys().all(known), "{open:?}: {judged:#}");
    assert!(
        coverage["notes"].to_string().contains("from before the recording"),
        "{coverage:#}"
    );
    let says = coverage["notes"].to_string().contains("not judged");
    assert_eq!(says, found.unclaimed > 0, "{coverage:#}");
    assert_eq!(rule(&judged, "command")["outcome"], "pass");
}

/// Another program has stopped the process. The recorder leaves it stopped, however the recorder exits.
#[test]
fn what_others_stopped_stays_stopped() {
    let mut sleeper = std::process::Command::new("/bin/sleep")
        .arg("1000")
        .spawn()
        .expect("sleep");
    let pid = sleeper.id();
    tracer_e2e::running::signal(pid, libc::SIGSTOP);
    wait_for("its stop", || (state(pid) == Some('T')).then_some(()));
    let dir = folder();
    let recorder = Recorder::attach(&dir.path().join("a"), &[pid], &[]);
    let recorded = recorder.interrupt().expect_success();
    assert!(recorded.said().contains("no HSA runtime"), "{}", recorded.said());
    assert_eq!(state(pid), Some('T'));
    let recorder = Recorder::attach(&dir.path().join("b"), &[pid], &[]);
    let guardians = descendants(recorder.pid(), "tracer-guardian");
    assert_eq!(guardians.len(), 2);
    recorder.kill();
    wait_for("the guardians' exit", || {
        let has_exited = |&pid: &u32| state(pid).is_none_or(|state| state == 'Z');
        guardians.iter().all(has_exited).then_some(())
    });
    assert_eq!(state(pid), Some('T'));
    sleeper.kill().expect("it can be killed");
    sleeper.wait().expect("it ends");
}

/// Its children load libraries all the time, so one of them is paused at any moment.
#[test]
fn a_killed_recorder_leaves_nobody_stopped() {
    for holds in [1, 4, 9] {
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "while :; do /bin/true; done"])
            .spawn()
            .expect("a shell");
        let pid = shell.id();
        let dir = folder();
        let recorder = Recorder::start(&dir.path().join("t"), &["-p".into(), pid.to_string()]);
        recorder.hears("attached   ");
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(20 * holds));
        recorder.kill();
        // It continues to work: its processor time grows.
        let ticks = || -> u64 {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the shell lives");
            let fields: Vec<&str> = text.rsplit_once(") ").expect("stat").1.split(' ').collect();
            (11..15).map(|i| fields[i].parse::<u64>().expect("a number")).sum()
        };
        for _ in 0..3 {
            let before = ticks();
            wait_for("the shell to go on", || (ticks() > before).then_some(()));
        }
        println!("killed {:?} after the attach", began.elapsed());
        shell.kill().expect("it can be killed");
        shell.wait().expect("it ends");
    }
}
