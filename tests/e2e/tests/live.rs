//! `tracer top` of running programs: the numbers of the command and of the processes are the truth, and a recording made with it is
//! a trace like any other.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::{Value, json};
use tracer_common::api::{FUNCTIONS, Layer, find};
use tracer_core::{
    live::Picture,
    tables::{CopiedBy, Path as Way},
};
use tracer_e2e::{
    dispatcher::Log,
    observed, place,
    running::{Program, Recorder, state},
    scenario::{Run, Scenario, folder},
    terminal::Terminal,
    truth::Truth,
};
use tracer_store::manifest::Target;

fn top(words: &[&str]) -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("top").args(words);
    command
}

/// Compares what the device saw with the numbers in a picture.
fn equal(picture: &Value, truth: &Truth) {
    let totals = &picture["totals"];
    assert_eq!(totals["dispatches"], truth.dispatches(), "{totals}");
    // A simulated GPU has no driver with rings: nobody knows how many jobs are on them.
    let paths = json!({ "doorbell": truth.dispatches(), "ring": null, "thunk": 0, "unseen": 0 });
    assert_eq!(totals["by_path"], paths, "{totals}");
    let watched = &picture["watched"];
    assert_eq!(
        ["doorbells", "packets", "unseen", "kernel_rings"].map(|what| watched[what].as_bool()),
        [Some(true), Some(true), Some(true), Some(false)],
        "{watched}"
    );
    assert!(picture["simulated"].is_string(), "{}", picture["simulated"]);
    assert_eq!(picture["complete"], true);
    // The device polls doorbells: of several stores in a row it may see only the last.
    let aql = truth.queues.iter().filter(|queue| queue.is_aql());
    let doorbells: usize = aql.map(|queue| queue.doorbells.len()).sum();
    assert!(totals["doorbells"].as_u64() >= Some(doorbells as u64), "{totals}");
    let other = truth.queues.iter().flat_map(|queue| &queue.packets);
    let other = other.filter(|packet| packet.kind != "kernel_dispatch").count();
    assert_eq!(totals["other_packets"], other, "{totals}");
    assert_eq!(
        (&totals["unread"], &picture["losses"]),
        (&0.into(), &Value::Array(Vec::new()))
    );
}

#[test]
fn the_picture_of_a_command_is_the_truth() {
    for (suite, asic, workload) in [
        ("trixie", "gfx1100", &["mixed"][..]),
        ("sid", "gfx942", &["compute-only", "-n", "300"]),
    ] {
        let dir = folder();
        let output = top(&["--once", "--json", "--"])
            .args(Scenario::hip(suite, asic, workload).simulated(dir.path()))
            .output()
            .expect("tracer runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let picture: Value = serde_json::from_slice(&output.stdout).expect("one picture and nothing else");
        let truth = Truth::read(&dir.path().join("truth.jsonl"));
        assert!(truth.dispatches() > 0);
        equal(&picture, &truth);
        for row in picture["queues"].as_array().expect("queues") {
            let of = |queue: &&tracer_e2e::truth::Queue| row["queue_id"] == queue.queue_id && row["pid"] == queue.pid;
            let queue = truth
                .queues
                .iter()
                .find(of)
                .unwrap_or_else(|| panic!("no such queue: {row}"));
            let dispatches = queue.packets.iter().filter(|p| p.kind == "kernel_dispatch").count();
            assert_eq!(row["dispatches"], dispatches, "{row}");
            let scheduler = if asic == "gfx1100" { "mes" } else { "hws" };
            assert_eq!(
                (&row["gpu"], &row["scheduler"]),
                (&asic.into(), &scheduler.into()),
                "{row}"
            );
            assert!(row["doorbells"].as_u64() >= Some(queue.doorbells.len() as u64), "{row}");
        }
    }
}

/// The calls of a picture are those of the program's own log, and its copies those of the device.
#[test]
fn calls_and_copies_are_those_of_the_program() {
    for api in ["all", "stats"] {
        let dir = folder();
        let output = top(&["--once", "--json", "--api", api, "--"])
            .args(Scenario::hip("trixie", "gfx1100", &["mixed"]).simulated(dir.path()))
            .output()
            .expect("tracer runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let picture: Picture = serde_json::from_slice(&output.stdout).expect("a picture");
        assert_eq!(picture.losses, []);
        let log = Log::read(&dir.path().join("log.jsonl"));
        let mut called: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for call in &log.calls {
            if let Some(number) = find(Layer::Hip, &call.call) {
                let (calls, failed) = called.entry(&call.call).or_default();
                *calls += 1;
                *failed += u64::from(FUNCTIONS[number].failed(call.result.into()));
            }
        }
        assert!(called.len() > 5, "{called:?}");
        let hip = picture.api.iter().filter(|row| row.layer == "hip");
        let shown: BTreeMap<&str, (u64, u64)> = hip
            .map(|row| (row.function.as_str(), (row.count, row.errors)))
            .filter(|(function, _)| called.contains_key(function))
            .collect();
        assert_eq!(shown, called, "{api}");
        let sum: u64 = picture.api.iter().map(|row| row.count).sum();
        assert_eq!(picture.totals.api_calls, Some(sum));
        for row in &picture.api {
            let returned = row.count - row.unreturned;
            assert_eq!(row.mean_ns, row.total_ns.map(|total| total / returned), "{row:?}");
        }
        let truth = Truth::read(&dir.path().join("truth.jsonl"));
        let moved = truth.queues.iter().flat_map(|queue| &queue.commands);
        let moved = moved.filter(|command| ["copy", "copy_rect", "fill"].contains(&command.op.as_str()));
        let moved: u64 = moved.map(|command| command.bytes).sum();
        let sdma = picture.copies.iter().filter(|row| row.by == Some(CopiedBy::Sdma));
        let (mut count, mut bytes) = (0, 0);
        for row in sdma {
            assert_eq!((row.unknown, row.path), (0, Way::Doorbell), "{row:?}");
            count += row.count;
            bytes += row.bytes.expect("each size is known");
        }
        assert_eq!((Some(count), bytes), (picture.totals.copies, moved), "{api}");
        assert!(bytes > 0);
        // The picture names the processes of queues and kernels.
        let names = picture.queues.iter().map(|queue| queue.comm.as_deref());
        let names = names.chain(picture.kernels.iter().map(|kernel| kernel.comm.as_deref()));
        assert!(
            names.into_iter().all(|name| name == Some("hsa-dispatch")),
            "{picture:?}"
        );
    }
}

#[test]
fn a_program_that_runs_is_shown_and_recorded_from_now_on() {
    let program = Program::steady("trixie", "gfx1100", &["--threads=2"]);
    let pid = program.pid();
    program.goes_on(500);
    let traces = folder();
    let trace = traces.path().join("t.trace");
    let mut terminal = Terminal::start(top(&[
        "--detail",
        "full",
        "-o",
        &trace.display().to_string(),
        "-p",
        &pid.to_string(),
    ]));
    terminal.wait_for(|screen| screen.contains("100.0% doorbell"));
    let screen = terminal.wait_for(|screen| screen.contains("lost 0") && screen.contains("SIMULATED"));
    assert!(screen.contains("(hsa-dispatch)"), "{screen}");
    program.goes_on(500);
    terminal.press("R");
    terminal.wait_for(|screen| screen.contains("REC "));
    program.goes_on(500);
    terminal.press("R");
    terminal.wait_for(|screen| screen.contains("recorded "));
    // The trace exists already.
    terminal.press("R");
    terminal.wait_for(|screen| screen.contains("t.trace") && !screen.contains("recorded "));
    terminal.press("q");
    let (status, _) = terminal.end();
    assert!(status.success(), "{status}");
    assert_ne!(state(pid), Some('T'));
    program.goes_on(500);
    let run = stopped(program, &trace);
    let found = observed::adopted(&run, false);
    println!("{found:?}");
    assert!(found.claimed >= 300 && found.outside >= 1500, "{found:?}");
    let manifest = run.trace.manifest();
    assert!(manifest.complete);
    assert!(
        matches!(&manifest.target, Target::Attached { pids } if pids[..] == [pid]),
        "{manifest:?}"
    );
}

/// Returns the results of the program, with a trace that was recorded while it ran.
fn stopped(mut program: Program, trace: &Path) -> Run {
    program.stop();
    assert!(program.wait().success());
    let dir = std::mem::replace(&mut program.dir, folder());
    let output = Command::new("true").output().expect("there is always true");
    Run::read_trace(dir, trace, output)
}

#[test]
fn a_command_goes_on_without_its_viewer() {
    let dir = folder();
    let mut words = Scenario::new("trixie", "gfx942", &["steady"]).simulated(dir.path());
    let stop = dir.path().join("stop");
    words.extend(["--until".into(), stop.clone().into_os_string()]);
    let mut command = top(&["--"]);
    command.args(&words);
    let mut terminal = Terminal::start(command);
    terminal.wait_for(|screen| screen.contains("100.0% doorbell"));
    terminal.press("q");
    let (status, screen) = terminal.end();
    assert!(status.success(), "{status}");
    assert!(screen.contains("continues as process"), "{screen}");
    std::fs::write(stop, "").expect("it can be written");
    let did = tracer_e2e::running::wait_for("the command's summary", || {
        let text = std::fs::read(dir.path().join("did.json")).ok()?;
        serde_json::from_slice::<Value>(&text).ok()
    });
    assert_eq!(did["results"], "ok");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (words, code, says) in [
        (&["--once", "--json"][..], 2, "required"),
        (&["-p", "1", "some.trace"], 2, "cannot be used with"),
        (&["--duration", "1s", "some.trace"], 2, "required"),
        (&["--once", "--json", "--", "/no/such/program"], 127, "/no/such/program"),
        (&["-p", "1"], 125, "--once --json"),
    ] {
        let output = top(words).output().expect("tracer runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

/// A recording at the same time sees the same, because several recorders can have probes in one process.
#[test]
fn a_recorder_and_a_viewer_do_not_disturb_each_other() {
    let program = Program::steady("trixie", "gfx1100", &[]);
    let pid = program.pid();
    program.goes_on(100);
    let trace = program.dir.path().join("t.trace");
    let recorder = Recorder::attach(&trace, &[pid], &["--detail", "full"]);
    let viewer = top(&["--once", "--json", "--duration", "300ms", "-p", &pid.to_string()]);
    let seen = { viewer }.output().expect("tracer runs");
    let picture: Value = serde_json::from_slice(&seen.stdout).expect("a picture");
    assert!(picture["totals"]["dispatches"].as_u64() > Some(0), "{picture}");
    program.goes_on(500);
    program.stop();
    let recorded = recorder.wait().expect_success();
    let run = program.read(recorded);
    let found = observed::adopted(&run, true);
    assert!(found.claimed >= 500, "{found:?}");
}

/// A picture of a process that does nothing with a GPU: what no probe watches has no number.
#[test]
fn what_is_not_watched_has_no_number() {
    let output = top(&["--once", "--json", "--", "true"]).output().expect("tracer runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture: Value = serde_json::from_slice(&output.stdout).expect("a picture");
    let totals = &picture["totals"];
    for name in [
        "dispatches",
        "doorbells",
        "copies",
        "unread",
        "dispatches_per_s",
        "doorbells_per_s",
        "copies_per_s",
    ] {
        assert_eq!(totals[name], Value::Null, "{name}");
    }
    // Without a runtime, samples show all that a GPU takes from the queues that ioctls create, and there is none.
    let paths = json!({ "doorbell": null, "ring": null, "thunk": null, "unseen": 0 });
    assert_eq!(totals["by_path"], paths);
    assert_eq!(
        (&picture["watched"]["doorbells"], &picture["watched"]["ioctls"]),
        (&false.into(), &true.into())
    );
    // The driver's ioctls are watched: the process made none.
    assert_eq!(picture["processes"][0]["ioctls"], 0, "{picture}");
    assert_eq!(picture["processes"][0]["dispatches"], Value::Null, "{picture}");
}

/// The last picture is that of the moment at which the capture ended, and not of a later one, when nobody counts any more. A program
/// at a steady pace has had the same rate in the seconds before. The bounds are twice the greatest and half the least of these:
/// other programs on the machine disturb its pace.
#[test]
fn the_rate_of_the_last_picture_is_that_of_the_seconds_before() {
    let program = Program::steady("trixie", "gfx1100", &[]);
    let pid = program.pid().to_string();
    program.goes_on(200);
    let before = program.progress();
    let output = top(&["--once", "--json", "--duration", "3s", "-p", &pid])
        .output()
        .expect("tracer runs");
    let done = program.progress() - before;
    program.stop();
    let picture: Value = serde_json::from_slice(&output.stdout).expect("a picture");
    let totals = &picture["totals"];
    let history: Vec<u64> = totals["history"]
        .as_array()
        .expect("seconds")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    // Of the seconds of a capture of 3 s, the last complete two are whole.
    let [.., one, two] = history[..] else {
        panic!("{history:?}")
    };
    let rate = totals["dispatches_per_s"].as_f64().expect("a rate");
    let (least, most) = (one.min(two) as f64 / 2.0, one.max(two) as f64 * 2.0);
    assert!(
        one > 0 && two > 0 && (least..=most).contains(&rate),
        "{rate} a second after {history:?}"
    );
    let doorbells = totals["doorbells_per_s"].as_f64().expect("a rate");
    assert!(
        (least..=most).contains(&doorbells),
        "{doorbells} doorbells a second after {history:?}"
    );
    // The program itself counts no fewer than what was seen of it.
    assert!(one + two <= done, "{one} and {two} of {done}");
    let mut program = program;
    assert!(program.wait().success());
}
