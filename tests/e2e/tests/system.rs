//! Recordings of the whole machine: every process that uses a GPU is recorded, from then on or from its first packet on.
//!
//! Other processes may use the machine at the same time, so every assertion is about processes that its test has started.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use tracer_core::tables::Fact;
use tracer_e2e::{
    compare, observed, place,
    running::{Program, Recorded, Recorder, descendants, signal, state, wait_for},
    scenario::{Scenario, folder},
    terminal::Terminal,
    truth::Truth,
};
use tracer_store::{State, Trace, manifest::Target};

fn tracer(words: &[&str]) -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command.args(words);
    command
}

/// Records every process, from the return of this function on.
fn record(trace: &Path, more: &[&str]) -> Recorder {
    let words = ["-a"].iter().chain(more).map(|word| (*word).to_owned());
    let recorder = Recorder::start(trace, &words.collect::<Vec<_>>());
    recorder.hears("watching   every process");
    recorder
}

/// Returns the results of a recording of several programs, for one of them.
fn again(output: &Output, trace: &Path) -> Recorded {
    Recorded {
        output: output.clone(),
        trace: trace.to_owned(),
    }
}

fn elsewhere(options: &[&str]) -> Vec<std::ffi::OsString> {
    let program = place::programs().join("elsewhere").into_os_string();
    let words = options.iter().map(Into::into);
    [program].into_iter().chain(words).chain(["--".into()]).collect()
}

/// Starts a workload.
fn start(scenario: &Scenario) -> Program {
    let dir = folder();
    let words = scenario.simulated(dir.path());
    Program::start(dir, &words)
}

#[test]
fn processes_that_run_already_and_later_ones() {
    let running = Program::steady("trixie", "gfx1100", &["--threads=2"]);
    running.goes_on(500);
    let pid = running.pid();
    let traces = folder();
    let trace = traces.path().join("t.trace");
    let recorder = record(&trace, &["--detail", "full"]);
    assert!(
        recorder
            .hears(&format!("attached   process {pid} "))
            .contains("hsa-dispatch")
    );

    // Both runtimes, once through HIP, and processes that exit quickly.
    let mut come = vec![
        start(&Scenario::new("sid", "gfx942", &["compute-only", "-n", "300"])),
        start(&Scenario::new("trixie", "gfx1100", &["mixed"])),
        start(&Scenario::hip("sid", "gfx942", &["mixed"])),
    ];
    for program in &mut come {
        assert!(program.wait().success());
    }
    let mut short = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "2"]);
    short.through = elsewhere(&["--in-turn", "6"]);
    let mut short = start(&short);
    assert!(short.wait().success());

    running.goes_on(500);
    let recorded = recorder.interrupt().expect_success();
    assert_ne!(state(pid), Some('T'));
    // No probe is left in its memory, and it continues to work.
    running.goes_on(500);
    running.stop();

    let output = recorded.output;
    let run = running.read(again(&output, &trace));
    let manifest = run.trace.manifest();
    assert_eq!((&manifest.target, manifest.exit), (&Target::System, None));
    assert!(manifest.complete && manifest.libraries.len() >= 2, "{manifest:?}");
    let found = observed::adopted_of_machine(&run, false);
    println!("ran already: {found:?}");
    assert!(found.claimed >= 500 && found.outside >= 1000, "{found:?}");

    for program in come {
        let mut run = program.read(again(&output, &trace));
        let compared = compare::of_machine(&mut run);
        println!("came later: {compared:?}");
        assert!(compared.dispatches as u64 == run.truth.dispatches() && compared.dispatches > 0);
        let pids: Vec<u32> = run.truth.queues.iter().map(|queue| queue.pid).collect();
        let named = |fact: &Fact| match fact {
            Fact::Process(process) => {
                pids.contains(&process.pid) && process.comm == "hsa-dispatch" && process.exit_ns.is_some()
            }
            _ => false,
        };
        assert!(run.facts.iter().any(named), "{pids:?}");
    }
    // Each of them wrote its own summary.
    let dir = std::mem::replace(&mut short.dir, folder());
    let mut run = tracer_e2e::scenario::Run::read_trace(dir, &trace, output);
    run.log = None;
    let compared = compare::of_machine(&mut run);
    println!("lived for a moment: {compared:?}");
    assert!(compared.dispatches >= 12 && compared.dispatches as u64 == run.truth.dispatches());
}

/// A process that starts while the recorder is stopped continues, and processes that others stopped stay stopped.
#[test]
fn a_killed_recorder_leaves_nobody_stopped() {
    let stopped = Program::steady("trixie", "gfx942", &[]);
    stopped.goes_on(100);
    let other = stopped.pid();
    let dir = folder();
    let recorder = record(&dir.path().join("t"), &[]);
    recorder.hears(&format!("attached   process {other} "));
    signal(other, libc::SIGSTOP);
    wait_for("its stop", || (state(other) == Some('T')).then_some(()));
    let guardians = descendants(recorder.pid(), "tracer-guardian");
    assert_eq!(guardians.len(), 2);
    // The stopped recorder resumes no process. The guardians do that, and the eBPF programs no longer pause any process.
    signal(recorder.pid(), libc::SIGSTOP);
    let mut program = start(&Scenario::new("sid", "gfx1100", &["compute-only", "-n", "20"]));
    assert!(program.wait().success());
    recorder.kill();
    wait_for("the guardians' exit", || {
        let has_exited = |&pid: &u32| state(pid).is_none_or(|state| state == 'Z');
        guardians.iter().all(has_exited).then_some(())
    });
    assert_eq!(state(other), Some('T'));
    signal(other, libc::SIGCONT);
    stopped.goes_on(100);
}

#[test]
fn a_duration_ends_it_in_a_trace_of_its_own_name() {
    let dir = folder();
    let output = tracer(&["record", "-a", "--duration", "300ms"])
        .current_dir(dir.path())
        .output()
        .expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Vec<_> = std::fs::read_dir(dir.path()).expect("a folder").flatten().collect();
    assert_eq!(made.len(), 1);
    let name = made[0].file_name().into_string().expect("a plain name");
    assert!(name.starts_with("system-20") && name.ends_with(".trace"), "{name}");
    let trace = Trace::open(&made[0].path()).expect("a trace");
    assert_eq!(trace.state(), State::Complete);
    // No process was paused needlessly: tracer does not watch itself.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("(tracer)"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (words, says) in [
        (&["record", "-a", "-p", "1"][..], "cannot be used with"),
        (&["record", "-a", "--", "true"], "cannot be used with"),
        (&["record", "-a", "--no-follow"], "cannot be used with"),
        (&["top", "-a", "-p", "1"], "cannot be used with"),
        (&["top", "-a", "some.trace"], "cannot be used with"),
        (&["serve", "-a", "--", "true"], "cannot be used with"),
    ] {
        let output = tracer(words).output().expect("tracer runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn a_screen_of_every_process() {
    let mut terminal = Terminal::start(tracer(&["top", "-a"]));
    terminal.wait_for(|screen| screen.contains("every process"));
    let program = Program::steady("trixie", "gfx1100", &[]);
    terminal.wait_for(|screen| screen.contains("doorbell") && screen.contains("SIMULATED"));
    program.goes_on(300);
    terminal.press("q");
    let (status, _) = terminal.end();
    assert!(status.success(), "{status}");
    program.goes_on(100);

    let output = tracer(&["top", "-a", "--once", "--json", "--duration", "500ms"]).output();
    let output = output.expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture: Value = serde_json::from_slice(&output.stdout).expect("a picture");
    let pid = program.pid();
    let rows = picture["queues"].as_array().expect("queues");
    let own = rows.iter().filter(|row| row["pid"] == pid);
    assert!(
        own.map(|row| row["dispatches"].as_u64().unwrap_or(0)).sum::<u64>() > 0,
        "{picture}"
    );
}

#[test]
fn counters_of_every_process() {
    let server = Recorder::of(tracer(&["-v", "serve", "-a", "--listen", "127.0.0.1:0"]), Path::new(""));
    let line = server.hears("serving    ");
    let address = line
        .split_whitespace()
        .nth(1)
        .and_then(|url| url.strip_prefix("http://"));
    let address = address.expect("no TLS").to_owned();
    let mut program = start(&Scenario::new("sid", "gfx942", &["compute-only", "-n", "100"]));
    assert!(program.wait().success());
    let truth = Truth::read(&program.dir.path().join("truth.jsonl"));
    for queue in truth.queues.iter().filter(|queue| queue.is_aql()) {
        let labels = [
            format!("kfd_process_id=\"{}\"", queue.pid),
            format!("queue_id=\"{}\"", queue.queue_id),
        ];
        let expected = queue
            .packets
            .iter()
            .filter(|packet| packet.kind == "kernel_dispatch")
            .count();
        wait_for("the counters", || {
            let text = get(&address);
            let of = |line: &&str| {
                line.starts_with("tracer_dispatches_total{") && labels.iter().all(|label| line.contains(label))
            };
            let number = |line: &str| line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok());
            let sum: f64 = text.lines().filter(of).filter_map(number).sum();
            (sum as usize == expected).then_some(())
        });
    }
    signal(server.pid(), libc::SIGINT);
    let _ = server.wait().expect_success();
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}
