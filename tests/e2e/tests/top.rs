//! `tracer top` on a recorded trace: its numbers are the trace's, its keys work, and the terminal is restored afterwards, however
//! the program exits.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use serde_json::Value;
use tracer_core::{
    live::Picture,
    summary::{ApiCalls, Copies},
    tables::{CopiedBy, CopyOp, Fact},
    words::Named,
};
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario},
    terminal::{self, Terminal},
};

fn recorded() -> Run {
    let run = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "50"]).record();
    compare::all(&run);
    run
}

fn top(trace: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("top").arg(trace).args(options);
    command
}

/// Counts the facts of a kind on a queue.
fn on(run: &Run, number: u64, of: impl Fn(&Fact) -> Option<u32>) -> u64 {
    run.facts
        .iter()
        .filter(|fact| of(fact).is_some_and(|queue| u64::from(queue) == number))
        .count() as u64
}

#[test]
fn the_picture_at_the_end_has_the_numbers_of_the_truth() {
    let run = recorded();
    let output = top(run.trace.dir(), &["--once", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture: Value = serde_json::from_slice(&output.stdout).unwrap();
    // `compare::all` checks that the facts equal the simulator's truth.
    let dispatch = |fact: &Fact| {
        if let Fact::Dispatch(d) = fact {
            Some(d.queue)
        } else {
            None
        }
    };
    let copy = |fact: &Fact| match fact {
        Fact::Copy(copy) if !copy.is_kernel() => copy.queue,
        _ => None,
    };
    let doorbell = |fact: &Fact| if let Fact::Doorbell(d) = fact { d.queue } else { None };
    let rows = picture["queues"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let number = row["queue"].as_u64().unwrap();
        assert_eq!(row["dispatches"], on(&run, number, dispatch), "{row}");
        assert_eq!(row["copies"], on(&run, number, copy), "{row}");
        assert_eq!(
            row["doorbells"],
            on(&run, number, doorbell) + on(&run, number, copy),
            "{row}"
        );
        // tracer does not watch the progress of copy engines.
        let unseen = if row["kind"] == "sdma" { Value::Null } else { 0.into() };
        assert_eq!(row["by_path"]["unseen"], unseen, "{row}");
        assert_eq!(row["by_path"]["ring"], Value::Null, "{row}");
        assert_eq!(row["stuck"], Value::Null, "{row}");
    }
    let all = run.facts.iter().filter(|fact| dispatch(fact).is_some()).count();
    assert_eq!(picture["totals"]["dispatches"], all);
    // The report and the picture say the same of the same trace, also what is unknown.
    let totals = &picture["totals"];
    assert_eq!(totals["by_path"], run.report["dispatches"]["by_path"]);
    assert_eq!(totals["by_path"]["ring"], Value::Null);
    for name in ["dispatches", "doorbells", "copies"] {
        assert_eq!(totals[name], run.report[name]["total"], "{name}");
    }
    assert_eq!(totals["other_packets"], run.report["packets"]["total"]);
    assert_eq!(
        (&picture["simulated"], &picture["complete"]),
        (&run.report["simulated"], &true.into())
    );
    let watched = picture["watched"].as_object().unwrap().iter();
    let mut watched: Vec<&str> = watched
        .filter(|(_, on)| **on == true)
        .map(|(name, _)| name.as_str())
        .collect();
    let mut expected: Vec<&str> = run.report["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    watched.sort_unstable();
    expected.sort_unstable();
    assert_eq!(watched, expected);
    assert_eq!(totals["by_path"]["doorbell"], all);
    assert_eq!(picture["losses"], Value::Array(Vec::new()));
    let named: u64 = picture["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| kernel["count"].as_u64().unwrap())
        .sum();
    assert_eq!(named, all as u64);
}

/// The report and the picture have the same calls and copies of the same trace.
#[test]
fn calls_and_copies_at_the_end_are_those_of_the_report() {
    for api in ["all", "stats"] {
        let scenario = Scenario {
            api,
            ..Scenario::hip("trixie", "gfx1100", &["mixed"])
        };
        let run = scenario.record();
        let output = top(run.trace.dir(), &["--once", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let picture: Picture = serde_json::from_slice(&output.stdout).unwrap();
        let reported: ApiCalls = serde_json::from_value(run.report["api_calls"].clone()).unwrap();
        assert_eq!(picture.totals.api_calls, reported.total);
        assert_eq!(picture.api.len(), reported.by_function.len());
        assert!(picture.api.len() > 5, "{:?}", picture.api);
        for row in &picture.api {
            let function = &reported.by_function[&row.function];
            assert_eq!(
                (&row.layer, row.count, row.errors, row.unreturned),
                (&function.layer, function.count, function.errors, function.unreturned)
            );
            let times = function.ns.map(|ns| (ns.total, (ns.p50, ns.p99)));
            assert_eq!(row.total_ns.zip(row.ns), times, "{row:?}");
            // A trace has only the sum of calls that were counted.
            if api == "stats" {
                assert_eq!(row.per_s, None, "{row:?}");
            }
        }
        let copies: Copies = serde_json::from_value(run.report["copies"].clone()).unwrap();
        let mut moved: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in &picture.copies {
            if row.by == Some(CopiedBy::Sdma) && row.op.is_some_and(|op| op != CopyOp::None) {
                let direction = row.direction.map_or("unknown", Named::name);
                let (count, bytes) = moved.entry(direction.to_owned()).or_default();
                *count += row.count;
                *bytes += row.bytes.unwrap();
            }
        }
        let by_direction = copies.by_direction.into_iter();
        let expected: BTreeMap<_, _> = by_direction.map(|(name, m)| (name, (m.count, m.bytes))).collect();
        assert!(!expected.is_empty());
        assert_eq!(moved, expected);
        let kernels = picture.copies.iter().filter(|row| row.by == Some(CopiedBy::Kernel));
        assert_eq!(Some(kernels.map(|row| row.count).sum()), copies.kernels.count);
    }
}

#[test]
fn the_screen_shows_the_numbers_and_keys_work() {
    let run = recorded();
    let all = run
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Dispatch(_)))
        .count();
    let kernel = run.facts.iter().find_map(|fact| {
        if let Fact::Dispatch(dispatch) = fact {
            dispatch.kernel.clone()
        } else {
            None
        }
    });
    let kernel = kernel.expect("a kernel with a name");
    let mut terminal = Terminal::start(top(run.trace.dir(), &["--speed", "1024"]));
    let screen = terminal.wait_for(|screen| screen.contains("ended"));
    for words in [
        &format!("{all} dispatches, 100.0% doorbell, ? ring"),
        "lost 0",
        "SIMULATED",
        "not watched: ",
    ] {
        assert!(screen.contains(words), "no {words} in\n{screen}");
    }
    terminal.press("2");
    terminal.wait_for(|screen| screen.contains(&*kernel));
    terminal.press("7");
    terminal.wait_for(|screen| screen.contains("hsa-dispatch"));
    terminal.press("6");
    terminal.wait_for(|screen| screen.contains("CREATE_QUEUE"));
    terminal.press("3");
    terminal.wait_for(|screen| screen.contains("API calls: ? (not watched"));
    terminal.press("4");
    terminal.wait_for(|screen| screen.contains("no copies seen"));
    terminal.press("1\r");
    terminal.wait_for(|screen| screen.contains("reserve to doorbell"));
    terminal.press("?");
    terminal.wait_for(|screen| screen.contains("this help"));
    terminal.press("xq");
    assert!(terminal.end().0.success());
}

/// A replay starts at the first time of the trace. Its clock is that of the recording, which counts from the start of the machine:
/// from 0 on, a replay would show nothing for as long as the machine had run.
#[test]
fn a_replay_starts_with_the_trace_and_looks_back_no_further() {
    let run = recorded();
    let began = run.trace.manifest().started.monotonic_ns;
    let all = run.dispatches().count();
    let mut terminal = Terminal::start(top(run.trace.dir(), &[]));
    // Before a second has passed there is nothing to look back to.
    terminal.wait_for(|screen| screen.contains("disp/s"));
    terminal.press("[[");
    let screen = terminal.wait_for(|screen| screen.contains("FROZEN"));
    let back = |screen: &str| -> f64 {
        let Some((_, rest)) = screen.split_once("FROZEN, ") else {
            return 0.0;
        };
        let (back, _) = rest.split_once(" back").expect("how far");
        let (number, unit) = back.split_once(' ').unwrap_or_else(|| panic!("{back}"));
        number.parse::<f64>().expect("a number") * if unit == "ms" { 1e-3 } else { 1.0 }
    };
    let took = (run.trace.manifest().ended.as_ref().expect("an end").monotonic_ns - began) as f64 / 1e9;
    assert!(back(&screen) <= took, "{took} s:\n{screen}");
    terminal.press(" ");
    terminal.wait_for(|screen| screen.contains("ended") && screen.contains(&format!("{all} dispatches")));
    terminal.press("q");
    assert!(terminal.end().0.success());
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let run = recorded();
    let begin = || {
        let mut terminal = Terminal::start(top(run.trace.dir(), &[]));
        terminal.wait_for(|screen| screen.contains("? help"));
        terminal
    };
    let mut interrupted = begin();
    interrupted.press("\x03");
    assert!(interrupted.end().0.success());
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let terminal = begin();
        terminal.signal(signal);
        assert!(terminal.end().0.success(), "signal {signal}");
    }
    let panicking = Terminal::start(Command::new(env!("CARGO_BIN_EXE_panics")));
    let (status, screen) = panicking.end();
    assert!(!status.success());
    assert!(screen.contains("on purpose"), "a panic's words are lost:\n{screen}");
}

/// A terminal that closes sends no key. The thread that reads it must notice the closing.
#[test]
fn a_terminal_that_closes_ends_it() {
    let run = recorded();
    for _ in 0..4 {
        let mut terminal = Terminal::start(top(run.trace.dir(), &[]));
        terminal.wait_for(|screen| screen.contains("? help"));
        let status = terminal.hang_up(Duration::from_secs(20));
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{status:?}");
    }
}

/// The size that a terminal reports sets no limit. The drawn area has its own limit.
#[test]
fn a_screen_of_any_size_is_drawn_in_part() {
    let run = recorded();
    let mut terminal = Terminal::start(top(run.trace.dir(), &[]));
    terminal.wait_for(|screen| screen.contains("? help"));
    for (rows, columns) in [(65535, 65535), (0, 0), (1, 65535), (65535, 1), terminal::SIZE] {
        terminal.resize(rows, columns);
        // At least two pictures are drawn.
        std::thread::sleep(Duration::from_millis(250));
    }
    terminal.press("?");
    terminal.wait_for(|screen| screen.contains("this help"));
    terminal.press("xq");
    assert!(terminal.end().0.success());
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let run = recorded();
    let output = top(run.trace.dir(), &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125));
    assert!(said.contains("--once --json"), "{said}");
    let output = top(Path::new("/nowhere"), &["--once", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
}
