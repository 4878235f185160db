//! `tracer diff` of recordings that differ in a known way equals what the simulated device saw of each.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tracer_core::tables::Table;
use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, folder},
    truth::{Ioctl, Truth},
};

fn diff(before: &Path, after: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(place::programs().join("tracer"));
    command.arg("diff").args(options).args([before, after]);
    command.env_remove("COLUMNS").output().expect("tracer runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the exit code and the diff.
fn found(before: &Path, after: &Path, options: &[&str]) -> (Option<i32>, Value) {
    let output = diff(before, after, &[&["--format", "json"], options].concat());
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    (output.status.code(), found)
}

fn rows<'a>(diff: &'a Value, table: &str) -> &'a [Value] {
    let tables = diff["tables"].as_array().expect("tables");
    let of = tables.iter().find(|of| of["table"] == table).expect("the table");
    of["rows"].as_array().expect("rows")
}

fn figure<'a>(diff: &'a Value, table: &str, row: &str, name: &str) -> &'a Value {
    let row = rows(diff, table).iter().find(|of| of["name"] == row);
    let row = row.unwrap_or_else(|| panic!("no {row:?} in {table}"));
    let mut figures = row["figures"].as_array().expect("figures").iter();
    figures.find(|of| of["figure"] == name).expect("the figure")
}

/// Returns the values of a count on both sides, for each row of a table in which it is not 0 on both.
fn counts(diff: &Value, table: &str, name: &str) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for row in rows(diff, table) {
        let row = row["name"].as_str().expect("a name");
        let of = figure(diff, table, row, name);
        let value = |side: &str| of[side]["values"][0].as_u64().unwrap_or_else(|| panic!("{of}"));
        let values = (value("before"), value("after"));
        if values != (0, 0) {
            counts.insert(row.to_owned(), values);
        }
    }
    counts
}

/// Counts what a device saw, for two devices.
fn seen(runs: [&Run; 2], names: impl Fn(&Truth) -> Vec<String>) -> BTreeMap<String, (u64, u64)> {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for name in names(&runs[0].truth) {
        counts.entry(name).or_default().0 += 1;
    }
    for name in names(&runs[1].truth) {
        counts.entry(name).or_default().1 += 1;
    }
    counts
}

fn packets(truth: &Truth, is: impl Fn(&str) -> bool) -> u64 {
    let packets = truth.queues.iter().flat_map(|queue| &queue.packets);
    packets.filter(|packet| is(&packet.kind)).count() as u64
}

/// Returns the name that a trace has of an ioctl: those of DRM say that they are.
fn ioctl_name(ioctl: &Ioctl) -> String {
    let name = ioctl.name.as_deref().expect("a name");
    match ioctl.dev.as_str() {
        "kfd" => name.to_owned(),
        _ if name.starts_with("AMDGPU_") => name.to_owned(),
        _ => format!("DRM_{name}"),
    }
}

fn verdicts(diff: &Value) -> BTreeMap<String, u64> {
    let mut verdicts = BTreeMap::new();
    for table in diff["tables"].as_array().expect("tables") {
        let rows = table["rows"].as_array().expect("rows").iter();
        for figure in rows.flat_map(|row| row["figures"].as_array().expect("figures")) {
            let verdict = figure["verdict"].as_str().expect("a verdict").to_owned();
            *verdicts.entry(verdict).or_default() += 1;
        }
    }
    verdicts
}

/// Checks the counts against the logs of both devices.
fn counts_equal_the_devices(diff: &Value, runs: [&Run; 2]) {
    let [before, after] = runs;
    let both = |of: &dyn Fn(&Run) -> u64| (of(before), of(after));
    let total = |name: &str| counts(diff, "total", name).remove("total").unwrap_or_default();
    assert_eq!(total("dispatches"), both(&|run| run.truth.dispatches()));
    let others = |run: &Run| packets(&run.truth, |kind| !kind.ends_with("kernel_dispatch"));
    assert_eq!(total("packets"), both(&others));
    let barriers = |run: &Run| packets(&run.truth, |kind| kind.starts_with("barrier"));
    assert_eq!(total("barriers"), both(&barriers));
    assert_eq!(total("queues"), both(&|run| run.truth.queues.len() as u64));
    assert_eq!(total("ioctls"), both(&|run| run.truth.ioctls.len() as u64));
    let failed = |run: &Run| run.truth.ioctls.iter().filter(|ioctl| ioctl.ret < 0).count() as u64;
    assert_eq!(total("ioctls.failed"), both(&failed));
    assert_eq!(total("copies.bytes"), both(&|run| run.truth.copied()));
    let names = |truth: &Truth| truth.ioctls.iter().map(ioctl_name).collect();
    assert_eq!(counts(diff, "ioctl", "calls"), seen(runs, names));
    let of_kernels: (u64, u64) = counts(diff, "kernel", "dispatches")
        .values()
        .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    assert_eq!(of_kernels, both(&|run| run.truth.dispatches()));
    let queues = counts(diff, "queue", "dispatches");
    let mut found: Vec<u64> = queues.values().map(|counts| counts.1).filter(|&n| n > 0).collect();
    let of_queue = |queue: &tracer_e2e::truth::Queue| queue.packets.iter().filter(|p| p.is_dispatch()).count() as u64;
    let mut expected: Vec<u64> = after.truth.queues.iter().map(of_queue).filter(|&n| n > 0).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{queues:?}");
    let path = figure(diff, "path", "doorbell", "dispatches");
    let dispatches = both(&|run| run.truth.dispatches());
    assert_eq!(
        (&path["before"]["values"], &path["after"]["values"]),
        (&json!([dispatches.0]), &json!([dispatches.1]))
    );
}

/// More kernels, and barriers.
#[test]
fn differences_equal_what_the_devices_saw() {
    let record = |workload: &[&'static str]| {
        let mut scenario = Scenario::new("sid", "gfx1100", workload);
        scenario.api = "all";
        let run = scenario.record();
        compare::all(&run);
        run
    };
    let before = record(&["compute-only", "-n", "20"]);
    let after = record(&["compute-only", "-n", "25"]);
    let (a, b) = (before.trace.dir(), after.trace.dir());
    let (code, changed) = found(a, b, &[]);
    assert_eq!((code, &changed["outcome"]), (Some(0), &Value::Null));
    counts_equal_the_devices(&changed, [&before, &after]);
    let kernel = figure(&changed, "kernel", "vector_add", "dispatches");
    assert_eq!(
        (&kernel["change"], &kernel["relative"], &kernel["verdict"]),
        (&json!(5.0), &json!(0.25), &json!("differs"))
    );
    let calls = figure(&changed, "api", "hsa_signal_wait_scacquire", "calls");
    assert_eq!(
        (&calls["before"]["values"], &calls["after"]["values"]),
        (&json!([20]), &json!([25]))
    );
    let barriers = record(&["barriers"]);
    let (_, other) = found(a, barriers.trace.dir(), &[]);
    counts_equal_the_devices(&other, [&before, &barriers]);
    assert_eq!(
        figure(&other, "total", "total", "barriers")["before"]["values"],
        json!([0])
    );
    let signs = [&changed["before"][0]["simulated"], &changed["after"][0]["simulated"]];
    assert_eq!(signs, [&json!(before.trace.manifest().simulated); 2]);
    of_itself_nothing_differs(a);
    thresholds_decide(a, b);
    text_fits_and_says_that_it_is_simulated(&before, b);
    what_was_not_watched_is_unknown(&before, b);
    damage_is_unknown(a, b);
}

fn of_itself_nothing_differs(trace: &Path) {
    let (_, same) = found(trace, trace, &[]);
    let verdicts = verdicts(&same);
    let allowed = ["equal", "absent", "unknown"];
    assert!(
        verdicts.keys().all(|verdict| allowed.contains(&verdict.as_str())),
        "{verdicts:?}"
    );
    assert!(verdicts["equal"] > 100, "{verdicts:?}");
}

fn thresholds_decide(before: &Path, after: &Path) {
    for (threshold, code, outcome) in [
        ("dispatches>+0", 1, "fail"),
        ("dispatches>+25%", 0, "pass"),
        ("kernel:vector_add:dispatches>+24%", 1, "fail"),
        ("kernel:*:dispatches>+5", 0, "pass"),
        ("queues>+0", 0, "pass"),
        // One run of each tells nothing of times.
        ("api:*:p50>+1000%", 3, "inconclusive"),
        // The kernel's rings are not watched on every machine; a kernel of that name is nowhere.
        ("kernel:vector_sub:dispatches>+0", 3, "inconclusive"),
    ] {
        let (status, judged) = found(before, after, &["--fail-on", threshold]);
        assert_eq!(
            (status, &judged["outcome"]),
            (Some(code), &json!(outcome)),
            "{threshold}"
        );
        assert_eq!(judged["thresholds"][0]["threshold"], threshold);
    }
    // What fails is more important than what is not known; the tables that are shown do not matter.
    let both = [
        "--fail-on",
        "dispatches>+0",
        "--fail-on",
        "launch.p50>+10%",
        "--by",
        "ioctl",
    ];
    let (status, judged) = found(before, after, &both);
    assert_eq!((status, judged["tables"].as_array().map(Vec::len)), (Some(1), Some(1)));
    for mistake in [
        &["--fail-on", "dispatches>"][..],
        &["--fail-on", "nothing>+0"],
        &["--alpha", "2"],
    ] {
        let output = diff(before, after, mistake);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{mistake:?}");
    }
    let nowhere = diff(before, Path::new("/nonexistent.trace"), &[]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", said(&nowhere));
    let no_trace = diff(Path::new("/"), after, &["--fail-on", "dispatches>+0"]);
    assert_eq!(no_trace.status.code(), Some(2), "{}", said(&no_trace));
}

fn text_fits_and_says_that_it_is_simulated(before: &Run, after: &Path) {
    let sign = before.trace.manifest().simulated.as_deref().expect("a simulated GPU");
    for options in [
        &[][..],
        &["--all"],
        &["--by", "kernel"],
        &["--fail-on", "dispatches>+0"],
    ] {
        let output = diff(before.trace.dir(), after, options);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(sign) && text.contains("+25.0 %"), "{options:?}: {text}");
        let is_too_long = |line: &&str| line.chars().count() > 80 && line.trim_start().contains(' ');
        assert_eq!(
            text.lines().filter(is_too_long).collect::<Vec<_>>(),
            Vec::<&str>::new(),
            "{options:?}"
        );
    }
    let markdown = diff(before.trace.dir(), after, &["--format", "markdown", "--by", "kernel"]);
    let markdown = String::from_utf8_lossy(&markdown.stdout).into_owned();
    let row = markdown.lines().find(|line| line.contains("dispatches"));
    let cells: Vec<&str> = row.expect("a row").split('|').map(str::trim).collect();
    assert_eq!(
        cells[1..7],
        ["vector\\_add", "dispatches", "20", "25", "+25.0 %", "differs"]
    );
}

/// Calls that one side did not record are not calls that it did not make.
fn what_was_not_watched_is_unknown(before: &Run, after: &Path) {
    let mut scenario = Scenario::new("sid", "gfx1100", &["compute-only", "-n", "25"]);
    scenario.detail = "dispatch";
    let blind = scenario.record();
    let (_, found_one) = found(blind.trace.dir(), after, &[]);
    for (table, row, name) in [
        ("total", "total", "calls"),
        ("api", "hsa_signal_wait_scacquire", "calls"),
        ("layer", "hsa sync", "total"),
    ] {
        let of = figure(&found_one, table, row, name);
        assert_eq!(
            (&of["verdict"], &of["change"]),
            (&json!("unknown"), &Value::Null),
            "{of}"
        );
        assert!(
            of["after"]["values"][0].is_u64() && of["before"]["values"][0].is_null(),
            "{of}"
        );
    }
    assert_eq!(figure(&found_one, "total", "total", "dispatches")["verdict"], "equal");
    let (code, _) = found(blind.trace.dir(), before.trace.dir(), &["--fail-on", "calls>+1000"]);
    assert_eq!(code, Some(3));
}

/// A table that cannot be read hides what it has, and nothing else.
fn damage_is_unknown(before: &Path, after: &Path) {
    let dir = folder();
    let copy = dir.path().join("damaged.trace");
    let copied = Command::new("cp")
        .arg("-r")
        .args([after, &copy])
        .status()
        .expect("cp runs");
    assert!(copied.success());
    let table = copy.join(Table::Dispatches.name());
    let part = fs::read_dir(&table)
        .expect("the table")
        .next()
        .expect("a part")
        .expect("its name")
        .path();
    fs::write(&part, "damaged").expect("it can be written");
    let (code, damaged) = found(
        before,
        &copy,
        &["--fail-on", "dispatches<-100%", "--fail-on", "queues>+0"],
    );
    assert_eq!(code, Some(3));
    for (table, row) in [("total", "total"), ("kernel", "vector_add")] {
        let of = figure(&damaged, table, row, "dispatches");
        assert_eq!(
            (&of["verdict"], &of["change"]),
            (&json!("unknown"), &Value::Null),
            "{of}"
        );
    }
    assert_eq!(figure(&damaged, "total", "total", "queues")["verdict"], "equal");
    let about = &damaged["after"][0];
    assert_eq!(
        (&about["complete"], &about["damaged"]),
        (&json!(false), &json!(["dispatches"]))
    );
    let text = diff(before, &copy, &[]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("complete no, damaged tables: dispatches"), "{text}");
    fs::write(copy.join("manifest.json"), "{").expect("it can be written");
    let output = diff(before, &copy, &["--fail-on", "queues>+0"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
    assert!(said(&output).contains("manifest.json"), "{}", said(&output));
}

/// Every value is that of the report of its trace, and the p-values are those of their order.
#[test]
fn repeated_runs_have_the_values_of_each() {
    let dir = folder();
    let mut reports: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut dispatched = Vec::new();
    for (side, options) in [("before", &[][..]), ("after", &["--dispatch-us", "20000"])] {
        fs::create_dir(dir.path().join(side)).expect("a folder");
        for number in 0..4 {
            let mut scenario = Scenario::new("trixie", "gfx942", &["compute-only", "-n", "10"]);
            scenario.api = "all";
            scenario.sim = options.to_vec();
            let run = scenario.record();
            let kept = dir.path().join(side).join(format!("{number}.trace"));
            fs::rename(run.trace.dir(), &kept).expect("it can be moved");
            dispatched.push(run.truth.dispatches());
            reports.entry(side).or_default().push(run.report);
        }
    }
    let patterns = ["before", "after"].map(|side| dir.path().join(side).join("*.trace"));
    let (code, runs) = found(&patterns[0], &patterns[1], &["--runs"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        (&runs["method"]["runs_needed"], &runs["method"]["exact"]),
        (&json!(4), &json!(true))
    );
    let wait = |report: &Value| report["api_calls"]["by_function"]["hsa_signal_wait_scacquire"]["ns"]["total"].clone();
    let of = figure(&runs, "api", "hsa_signal_wait_scacquire", "total");
    let mut separate = true;
    for side in ["before", "after"] {
        let values: Vec<Value> = reports[side].iter().map(wait).collect();
        assert_eq!(of[side]["values"], json!(values));
        let mut sorted: Vec<u64> = values.iter().map(|value| value.as_u64().expect("a time")).collect();
        sorted.sort_unstable();
        let median = f64::midpoint(sorted[1] as f64, sorted[2] as f64);
        assert_eq!(
            (&of[side]["median"], &of[side]["max"]),
            (&json!(median), &json!(sorted[3]))
        );
        // The device needs ten times 20 ms after the change.
        separate &= if side == "before" {
            sorted[3] < 200_000_000
        } else {
            sorted[0] >= 200_000_000
        };
    }
    if separate {
        let p = of["p"].as_f64().expect("a p-value");
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{of}");
    }
    let dispatches = figure(&runs, "total", "total", "dispatches");
    assert!(dispatched.iter().all(|&n| n >= 10), "{dispatched:?}");
    assert_eq!(
        (&dispatches["before"]["values"], &dispatches["after"]["values"]),
        (&json!(dispatched[..4]), &json!(dispatched[4..]))
    );
    assert_eq!(dispatches["verdict"], "equal");
    // Several traces are no repeated runs unless the user says so.
    let refused = diff(&patterns[0], &patterns[1], &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("--runs"), "{}", said(&refused));
    let one = dir.path().join("one.trace");
    symlink(dir.path().join("before/0.trace"), &one).expect("a link");
    let (_, few) = found(&one, &patterns[1], &["--runs"]);
    let of = figure(&few, "api", "hsa_signal_wait_scacquire", "total");
    assert_eq!((&of["verdict"], &of["p"]), (&json!("untested"), &Value::Null));
}
