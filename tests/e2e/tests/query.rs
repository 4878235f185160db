//! Answers of `tracer query` equal the truth log, the report, and each other in every format.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario},
};

fn query(trace: &str, sql: &str, options: &[&str]) -> Output {
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("query").args(options).args([trace, sql]);
    command.env_remove("COLUMNS").output().expect("tracer runs")
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn rows(trace: &Path, sql: &str) -> Vec<Value> {
    let output = query(&trace.to_string_lossy(), sql, &["--format", "jsonl"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("simulated"), "{said}");
    let text = text(&output);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Checks each dispatch against the packet that the device took.
fn dispatches_equal_the_device(run: &Run) {
    let sql = "select q.ring_base, d.index, d.kernel_object, d.kernarg, d.grid_x, d.grid_y, d.grid_z, d.path \
               from dispatches d join queues q on d.queue = q.queue order by q.ring_base, d.index";
    let found = rows(run.trace.dir(), sql);
    let mut taken = Vec::new();
    for queue in &run.truth.queues {
        let packets = queue.packets.iter().filter(|packet| packet.kind == "kernel_dispatch");
        taken.extend(packets.map(|packet| (queue.ring_base, packet)));
    }
    taken.sort_by_key(|(ring, packet)| (*ring, packet.index));
    assert!(!taken.is_empty());
    assert_eq!(found.len(), taken.len());
    for (row, (ring, packet)) in found.iter().zip(taken) {
        let number = |column: &str| row[column].as_u64().expect("a number");
        assert_eq!((number("ring_base"), number("index")), (ring, packet.index));
        assert_eq!(
            (number("kernel_object"), number("kernarg")),
            (packet.kernel_object, packet.kernarg_address)
        );
        let grid = ["grid_x", "grid_y", "grid_z"].map(number);
        assert_eq!((grid, &row["path"]), (packet.grid.map(u64::from), &"doorbell".into()));
    }
}

/// Checks groups and sums against the report.
fn groups_equal_the_report(run: &Run) {
    let sql = "select kernel, kernel_object, count(*) as n from dispatches group by kernel, kernel_object";
    let found = rows(run.trace.dir(), sql);
    let kernels = run.report["answers"]["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty());
    for kernel in kernels.iter().filter(|kernel| !kernel["name"].is_null()) {
        let counts = found.iter().filter(|row| row["kernel"] == kernel["name"]);
        let count: u64 = counts.map(|row| row["n"].as_u64().expect("a count")).sum();
        assert_eq!(kernel["count"], count, "{kernel}");
    }
    let copies = rows(
        run.trace.dir(),
        "select sum(bytes) as bytes, count(*) as n from copies where by <> 'kernel'",
    );
    assert_eq!(copies[0]["bytes"], run.report["copies"]["bytes"]);
    let ioctls = rows(run.trace.dir(), "select count(*) as n from ioctls");
    assert_eq!(ioctls[0]["n"], run.report["ioctls"]["total"]);
    let calls = rows(
        run.trace.dir(),
        "select function, count(*) as n from api_calls group by function",
    );
    let all: u64 = calls.iter().map(|row| row["n"].as_u64().expect("a count")).sum();
    assert_eq!(all, run.api_calls().count() as u64);
}

/// Checks that all formats have the same cells.
fn formats_agree(run: &Run) {
    let trace = run.trace.dir().to_string_lossy();
    let sql = "select kernel, count(*) as n, max(grid_x) as most from dispatches group by kernel order by n desc, most, kernel";
    let of = |options: &[&str]| text(&query(&trace, sql, options));
    let rows: Vec<Value> = of(&["--format", "jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(rows.len() > 2);
    let csv = of(&["--format", "csv"]);
    let table = of(&["--wide"]);
    let markdown = of(&["--format", "markdown"]);
    assert!(csv.starts_with("kernel,n,most\n"), "{csv}");
    for (lines, skipped) in [(&csv, 1), (&table, 1), (&markdown, 2)] {
        let lines: Vec<&str> = lines.lines().skip(skipped).collect();
        assert_eq!(lines.len(), rows.len(), "{lines:?}");
        for (line, row) in lines.iter().zip(&rows) {
            let mut cells = line.split([' ', ',', '|']).filter(|cell| !cell.is_empty()).rev();
            let numbers = [cells.next(), cells.next()].map(|cell| cell.and_then(|cell| cell.parse::<u64>().ok()));
            assert_eq!(numbers, [row["most"].as_u64(), row["n"].as_u64()], "{line}");
            let name = row["kernel"].as_str().unwrap_or_default().replace('_', "");
            assert!(line.replace(['\\', '_'], "").contains(&name), "{line}: {name}");
        }
    }
    let fitted = of(&[]);
    assert!(fitted.lines().all(|line| line.chars().count() <= 80), "{fitted}");
}

#[test]
fn queries_equal_what_the_device_saw() {
    let mut scenario = Scenario::hip("sid", "gfx942", &["mixed"]);
    scenario.api = "all";
    let run = scenario.record();
    compare::all(&run);
    dispatches_equal_the_device(&run);
    groups_equal_the_report(&run);
    formats_agree(&run);
    // Mistakes are errors that say what there is.
    let trace = run.trace.dir().to_string_lossy();
    for (sql, word) in [
        ("select nope from dispatches", "kernel_object"),
        ("select 1 from nope", "--schema"),
    ] {
        let output = query(&trace, sql, &[]);
        assert_eq!(output.status.code(), Some(125), "{sql}");
        assert_eq!(output.stdout, b"");
        assert!(String::from_utf8_lossy(&output.stderr).contains(word), "{sql}");
    }
    assert_eq!(query("/nonexistent/*.trace", "select 1", &[]).status.code(), Some(125));
}

/// Rows of several recordings are told apart by their traces, and add up.
#[test]
fn several_recordings_are_queried_at_once() {
    let runs = [
        Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "30"]).record(),
        Scenario::new("trixie", "gfx942", &["compute-only", "-n", "50"]).record(),
    ];
    let dir = tracer_e2e::scenario::folder();
    for (number, run) in runs.iter().enumerate() {
        let link = dir.path().join(format!("{number}.trace"));
        std::os::unix::fs::symlink(run.trace.dir(), link).expect("a link");
    }
    let sql = "select trace, count(*) as n from dispatches group by trace order by trace";
    let found = rows(&dir.path().join("*.trace"), sql);
    let found: Vec<(&str, u64)> = found
        .iter()
        .map(|row| {
            (
                row["trace"].as_str().expect("a path"),
                row["n"].as_u64().expect("a count"),
            )
        })
        .collect();
    let names = [0, 1].map(|number| dir.path().join(format!("{number}.trace")).display().to_string());
    let expected: Vec<(&str, u64)> = names
        .iter()
        .zip(&runs)
        .map(|(name, run)| (name.as_str(), run.truth.dispatches()))
        .collect();
    assert_eq!(found, expected);
}
