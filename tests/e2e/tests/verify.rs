//! `tracer verify` on AMD's runtime: what passes, fails and stays open, and the forms of a verdict.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tracer_core::tables::Fact;
use tracer_e2e::{
    place,
    scenario::{Run, Scenario},
    verdict::{amiss, rule, verdict},
};

fn record(asic: &'static str) -> Run {
    Scenario::new("trixie", asic, &["compute-only", "-n", "50"]).record()
}

fn trace(run: &Run) -> &Path {
    run.trace.dir()
}

/// Returns the rules that stay open where this kernel has no `drm_sched` events.
fn open_without_rings(run: &Run) -> BTreeMap<String, String> {
    let rings = run
        .trace
        .manifest()
        .capabilities
        .iter()
        .any(|name| name == "kernel_rings");
    let open = [("no-ring", "inconclusive")].map(|(rule, outcome)| (rule.to_owned(), outcome.to_owned()));
    open.into_iter().filter(|_| !rings).collect()
}

/// Writes a policy file.
fn own(run: &Run, text: &str) -> String {
    let path = run.dir.path().join("policy.toml");
    fs::write(&path, text).expect("it can be written");
    path.to_str().expect("a plain path").to_owned()
}

/// Also the runtime's own dispatches are covered, and no ioctl occurs between reserve and doorbell.
#[test]
fn the_built_in_policies_leave_only_the_rings_open() {
    for (suite, asic, policy) in [
        ("bookworm", "gfx90a", "hws"),
        ("trixie", "gfx1100", "mes-bypass"),
        ("trixie", "gfx942", "doorbell-bypass"),
        ("sid", "gfx942", "hws"),
        ("experimental", "gfx1100", "mes-bypass"),
    ] {
        let run = Scenario::new(suite, asic, &["compute-only", "-n", "50"]).record();
        let (code, found) = verdict(policy, trace(&run));
        let open = open_without_rings(&run);
        assert_eq!(amiss(&found), open, "{suite} {policy}: {found:#}");
        assert_eq!(code, Some(if open.is_empty() { 0 } else { 3 }));
        assert_eq!(rule(&found, "coverage")["counts"]["unread"], 0);
        assert_eq!(found["simulated"], json!(run.trace.manifest().simulated));
        let counts = &rule(&found, "no-syscall")["counts"];
        let dispatches = run
            .facts
            .iter()
            .filter(|fact| matches!(fact, Fact::Dispatch(_)))
            .count();
        assert!(dispatches >= 50);
        assert_eq!(
            counts["dispatches_with_reserve"], dispatches,
            "{suite} {asic}: {found:#}"
        );
    }
}

/// Several producers on one queue ring for each other. Exactly those dispatches are open whose reserve was not seen and whose
/// process made an ioctl since their index was last seen free. One of ROCr's own threads may make ioctls.
#[test]
fn of_many_producers_what_is_open_has_an_ioctl_to_blame() {
    let run = Scenario::new("sid", "gfx1100", &["multi-thread", "-n", "2000", "--threads", "4"]).record();
    let (_, found) = verdict("mes-bypass", trace(&run));
    let ioctls: Vec<(u32, u64)> = run
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Ioctl(ioctl) => Some((ioctl.pid, ioctl.enter_ns)),
            _ => None,
        })
        .collect();
    let (mut open, mut all, mut unseen) = (0, 0, 0);
    for fact in &run.facts {
        let Fact::Dispatch(dispatch) = fact else { continue };
        all += 1;
        if dispatch.reserve_ns.is_some() {
            continue;
        }
        unseen += 1;
        let free_ns = dispatch
            .unreserved_ns
            .unwrap_or_else(|| panic!("never seen free: {dispatch:?}"));
        let between = |(pid, enter_ns): &&(u32, u64)| {
            *pid == dispatch.pid && free_ns < *enter_ns && *enter_ns <= dispatch.time_ns
        };
        open += u64::from(ioctls.iter().any(|ioctl| between(&ioctl)));
    }
    println!("{all} dispatches, {unseen} reserved by another thread than the one that rang, {open} of them open");
    let counts = &rule(&found, "no-syscall")["counts"];
    assert_eq!(
        (&counts["dispatches"], &counts["dispatches_undecided"]),
        (&json!(all - open), &json!(open))
    );
    let mut expected = open_without_rings(&run);
    if open > 0 {
        expected.insert("no-syscall".to_owned(), "inconclusive".to_owned());
    }
    assert_eq!(amiss(&found), expected, "{found:#}");
}

/// ROCr fills and copies by kernels on its own queues.
#[test]
fn beside_copies_every_dispatch_is_decided() {
    let run = Scenario::new("sid", "gfx1100", &["mixed"]).record();
    let (_, found) = verdict("mes-bypass", trace(&run));
    assert_eq!(amiss(&found), open_without_rings(&run), "{found:#}");
    let dispatches = run
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Dispatch(_)))
        .count();
    assert_eq!(
        rule(&found, "no-syscall")["counts"]["dispatches"],
        dispatches,
        "{found:#}"
    );
}

#[test]
fn rings_that_were_not_watched_are_named() {
    let run = record("gfx1100");
    if open_without_rings(&run).is_empty() {
        return;
    }
    let (_, found) = verdict("mes-bypass", trace(&run));
    let rings = rule(&found, "no-ring");
    assert_eq!(rings["missing"][0]["source"], "gpu_scheduler events");
    assert_eq!(rings["counts"]["jobs"], Value::Null);
}

#[test]
fn the_hws_is_not_the_mes() {
    let run = record("gfx942");
    let (code, found) = verdict("mes-bypass", trace(&run));
    assert_eq!((code, &found["outcome"]), (Some(1), &json!("fail")), "{found:#}");
    assert_eq!(amiss(&found)["scheduler"], "fail");
    let (code, found) = verdict("ring-submission", trace(&run));
    assert_eq!(code, Some(1), "{found:#}");
    assert_eq!(
        rule(&found, "ring-submission")["outcome"],
        "fail",
        "doorbells carried them"
    );
}

/// Changes the manifest of a trace.
fn change(trace: &Path, change: impl Fn(&mut Value)) {
    let path = trace.join("manifest.json");
    let mut manifest = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
    change(&mut manifest);
    fs::write(&path, manifest.to_string()).expect("it can be written");
}

#[test]
fn a_trace_that_is_not_whole_is_inconclusive() {
    let run = record("gfx1100");
    let policy = own(&run, "name = \"own\"\n[rules]\ncoverage = true\n");
    assert_eq!(verdict(&policy, trace(&run)).0, Some(0));
    let expect_open = |what: &str| {
        let (code, found) = verdict(&policy, trace(&run));
        assert_eq!(
            (code, amiss(&found).get("sound-capture").map(String::as_str)),
            (Some(3), Some("inconclusive")),
            "{what}"
        );
    };
    change(trace(&run), |manifest| manifest["losses"] = json!({"events": 7}));
    expect_open("lost events");
    change(trace(&run), |manifest| {
        manifest["losses"] = json!({});
        manifest["complete"] = json!(false);
    });
    expect_open("a killed recorder");
    change(trace(&run), |manifest| manifest["complete"] = json!(true));
    assert_eq!(verdict(&policy, trace(&run)).0, Some(0));
    let parts = fs::read_dir(trace(&run).join("dispatches")).expect("a folder");
    for part in parts.flatten() {
        fs::remove_file(part.path()).expect("it can be removed");
    }
    expect_open("rows that are gone");
    fs::write(trace(&run).join("manifest.json"), "{\"format\": \"tracer-trace\"").expect("it can be written");
    expect_open("no manifest");
}

/// Returns the command of a scenario, run by `tracer verify`.
fn verify_command(scenario: &Scenario, dir: &TempDir, arguments: &[&str]) -> Output {
    let record = scenario.command(dir);
    let command = record.get_args().skip_while(|argument| *argument != "--");
    let mut verify = Command::new(place::programs().join("tracer"));
    verify.arg("verify").args(arguments).args(command);
    verify.output().expect("tracer runs")
}

#[test]
fn a_command_is_recorded_and_judged_in_every_form() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a folder");
    let at = |name: &str| dir.path().join(name).to_str().expect("a plain path").to_owned();
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "5"]);
    let arguments = [
        "--policy",
        "doorbell-bypass",
        "--junit",
        &at("j.xml"),
        "--json",
        &at("v.json"),
        "-o",
        &at("kept"),
    ];
    let output = verify_command(&scenario, &dir, &arguments);
    let (out, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(3), "{out}{said}");
    assert!(out.contains("inconclusive  doorbell-bypass of "), "{out}");
    let found: Value = serde_json::from_slice(&fs::read(at("v.json")).expect("written")).expect("JSON");
    assert_eq!(rule(&found, "command")["outcome"], "pass");
    // The program's five, and one by which the runtime fills memory.
    let counts = &rule(&found, "no-syscall")["counts"];
    assert_eq!(counts["dispatches_with_reserve"], 6, "--detail full is implied");
    let junit = fs::read_to_string(at("j.xml")).expect("written");
    assert!(
        junit.contains("<testcase name=\"coverage\"") && junit.contains("<error "),
        "{junit}"
    );
    assert_eq!(
        verdict("doorbell-bypass", Path::new(&at("kept"))).0,
        Some(3),
        "the trace was kept"
    );
}

#[test]
fn a_command_that_fails_fails_the_rule_of_its_own() {
    let output = Command::new(place::programs().join("tracer"))
        .args(["verify", "--format", "json", "--", "/bin/sh", "-c", "exit 7"])
        .output()
        .expect("tracer runs");
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(rule(&found, "command")["sentence"], "the command exited with 7");
    assert_eq!(
        rule(&found, "dispatches")["outcome"],
        "inconclusive",
        "nothing was dispatched"
    );
}

#[test]
fn wrong_usage_is_refused_before_anything_runs() {
    let dir = TempDir::new().expect("a folder");
    let bad = dir.path().join("bad.toml");
    fs::write(&bad, "name = 'a'\n[rules]\nno-rings = true\n").expect("it can be written");
    let bad = bad.to_str().expect("a plain path");
    for (arguments, word) in [
        (vec!["--policy", "no-such", "--", "/bin/true"], "mes-bypass"),
        (
            vec!["--policy", bad, "--", "/bin/true"],
            "line 3: unknown field `no-rings`",
        ),
        (vec!["/no/such/trace"], "no trace at /no/such/trace"),
        (vec![], "required"),
        (vec!["a.trace", "--", "/bin/true"], "cannot be used with"),
    ] {
        let output = Command::new(place::programs().join("tracer"))
            .arg("verify")
            .args(&arguments)
            .output()
            .expect("tracer runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn github_gets_one_annotation_and_the_rest_in_the_steps_summary() {
    let run = record("gfx942");
    let summary = run.dir.path().join("summary.md");
    let output = Command::new(place::programs().join("tracer"))
        .args(["verify", "--policy", "mes-bypass", "--format", "github"])
        .arg(trace(&run))
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("tracer runs");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        out.starts_with("::error title=tracer verify mes-bypass%3A fail::") && out.lines().count() == 1,
        "{out}"
    );
    let summary = fs::read_to_string(summary).expect("written");
    assert!(summary.contains("| scheduler | fail |"), "{summary}");
}
