//! `tracer verify --claims` on AMD's runtime and simulated GPUs: the verdict on each claim, and the reason why one stays open.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;
use tracer_e2e::{place, truth::Truth};

/// Returns the dispatcher on a simulated GPU, in the form to which workloads are appended.
fn dispatcher(asic: &str, sim: &[&str], dir: &Path) -> Vec<String> {
    let (programs, kernels) = (place::programs(), place::kernels());
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let mut words = vec![
        text(&programs.join("kfd-sim")),
        "--root".to_owned(),
        text(&place::rootfs("trixie-hip")),
    ];
    words.extend(["--asic", asic].map(str::to_owned));
    words.extend(sim.iter().map(|&word| word.to_owned()));
    words.extend(["--truth".to_owned(), text(&dir.join("truth.jsonl"))]);
    for (option, path) in [("--kernels", &kernels), ("--bind", &kernels), ("--bind", &programs)] {
        words.extend([option.to_owned(), text(path)]);
    }
    words.extend(["--".to_owned(), text(&programs.join("hsa-dispatch"))]);
    words.extend(["--kernels".to_owned(), text(&kernels)]);
    words
}

fn verify(arguments: &[&str], dispatcher: &[String]) -> Output {
    let mut tracer = Command::new(place::programs().join("tracer"));
    tracer.arg("verify").args(arguments);
    if !dispatcher.is_empty() {
        tracer.arg("--").args(dispatcher);
    }
    tracer.output().expect("tracer runs")
}

/// Returns the exit code and the report.
fn report(claims: &str, asic: &str, sim: &[&str], dir: &TempDir) -> (Option<i32>, Value) {
    let path = dir.path().join("report.json");
    let path = path.to_str().expect("a plain path");
    let output = verify(&[claims, "--json", path], &dispatcher(asic, sim, dir.path()));
    let said = String::from_utf8_lossy(&output.stderr);
    let text = fs::read(path).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), serde_json::from_slice(&text).expect("JSON"))
}

fn verdicts(report: &Value) -> BTreeMap<u32, String> {
    let claims = report["claims"].as_array().expect("claims");
    let of = |claim: &Value| {
        let text = |key: &str| claim[key].as_str().expect("a string").to_owned();
        (text("id")[1..].parse().expect("a number"), text("verdict"))
    };
    claims.iter().map(of).collect()
}

fn claim<'a>(report: &'a Value, id: &str) -> &'a Value {
    let claims = report["claims"].as_array().expect("claims");
    claims.iter().find(|claim| claim["id"] == id).expect("the claim")
}

/// Returns the expected verdicts, from C1 on. `rings` stands for the verdicts that depend on `drm_sched` events.
fn expected(words: &str, report: &Value) -> BTreeMap<u32, String> {
    let rings = match report["place"]["ring_events"].as_bool() {
        Some(true) => "holds",
        _ => "inconclusive",
    };
    let words = words
        .split_whitespace()
        .map(|word| if word == "rings" { rings } else { word });
    (1..).zip(words.map(str::to_owned)).collect()
}

#[test]
fn every_claim_under_the_mes() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a folder");
    let (code, found) = report("--claims", "gfx1100", &[], &dir);
    let wanted = "rings not-tested contradicted inconclusive holds holds rings contradicted inconclusive \
                  not-tested contradicted not-tested";
    assert_eq!(verdicts(&found), expected(wanted, &found), "{found:#}");
    assert_eq!(code, Some(3));
    assert_eq!(found["tally"]["against_sources"], 0);
    for claim in found["claims"].as_array().expect("claims") {
        let simulated = claim["simulated"]
            .as_str()
            .is_some_and(|words| words.contains("kfd-sim"));
        assert_eq!(simulated, claim["scenario"].is_string(), "{claim:#}");
    }
    assert_eq!(found["place"]["gpus"][0]["scheduler"], "mes");
    assert!(found["place"]["simulated"].is_string() && found["place"]["kernel"].is_string());

    // A written report can be shown again.
    let path = dir.path().join("report.json");
    let path = path.to_str().expect("a plain path");
    let output = verify(&["--claims", "--from", path, "--format", "markdown"], &[]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        shown.contains("| gfx1100, simulated<br>Linux ") && shown.contains("\n## C12\n"),
        "{shown}"
    );
}

#[test]
fn every_claim_under_the_hws() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a folder");
    let (code, found) = report("--claims", "gfx942", &[], &dir);
    let wanted = "not-tested contradicted contradicted not-tested holds holds rings contradicted inconclusive \
                  not-tested contradicted inconclusive";
    assert_eq!(verdicts(&found), expected(wanted, &found), "{found:#}");
    assert_eq!(code, Some(3));
    assert_eq!(found["tally"]["against_sources"], 0);
    assert_eq!(found["place"]["gpus"][0]["product"], "AMD Instinct MI300X");
}

/// Only the requested claim is judged, with the numbers of the device itself.
#[test]
fn cooperative_launches_are_counted_as_the_device_counts_them() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a folder");
    let (code, found) = report("--claims=c6", "gfx90a", &[], &dir);
    assert_eq!(
        (code, found["claims"].as_array().map(Vec::len)),
        (Some(0), Some(1)),
        "{found:#}"
    );
    let checks = &claim(&found, "C6")["checks"];
    let truth = Truth::read(&dir.path().join("truth.jsonl"));
    let calls = truth.ioctls.iter();
    let gws = calls
        .filter(|call| call.name.as_deref() == Some("ALLOC_QUEUE_GWS"))
        .count();
    assert_eq!(checks[1]["counts"]["alloc_queue_gws"], gws);
    let packets = truth.queues.iter().flat_map(|queue| &queue.packets);
    let dispatches = packets.filter(|packet| packet.kind == "kernel_dispatch").count();
    assert_eq!(checks[0]["counts"]["dispatches"], dispatches);
}

/// A refusal by the driver leaves the claim open, with the dispatcher's message, and does not affect the others.
#[test]
fn a_scenario_that_fails_leaves_its_claims_open() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a folder");
    let fail = ["--fail", "ALLOC_QUEUE_GWS:1:EBUSY"];
    let (code, found) = report("--claims=C5,C6", "gfx1100", &fail, &dir);
    assert_eq!(code, Some(3));
    let wanted = [(5, "holds".to_owned()), (6, "inconclusive".to_owned())];
    assert_eq!(verdicts(&found), wanted.into(), "{found:#}");
    let evidence = claim(&found, "C6")["checks"][0]["evidence"]
        .as_str()
        .expect("a sentence");
    assert!(evidence.contains("hsa_queue_create"), "{evidence}");
}

#[test]
fn a_scenario_that_cannot_run_names_the_fix() {
    let dir = TempDir::new().expect("a folder");
    let no_report = dir.path().join("x.json");
    fs::write(&no_report, "{}").expect("it can be written");
    let no_report = no_report.to_str().expect("a plain path");
    let nowhere = ["/no/such/dispatcher".to_owned()];
    let helpless = ["/bin/sh", "-c", "echo there is no GPU >&2; exit 3"].map(str::to_owned);
    for (arguments, dispatcher, code, words) in [
        (&["--claims"][..], &nowhere[..], 127, "/no/such/dispatcher"),
        (
            &["--claims"],
            &helpless,
            125,
            "cannot test the claims here: exit code 3: there is no GPU",
        ),
        (&["--claims=C13"], &nowhere, 2, "no claim C13"),
        (
            &["--claims", "--format", "junit"],
            &nowhere,
            2,
            "--format text, json or markdown",
        ),
        (&["--claims", "--policy", "hws"], &nowhere, 2, "cannot be used with"),
        (&["--claims", "a.trace"], &[], 2, "cannot be used with"),
        (&["--control", "true", "a.trace"], &[], 2, "cannot be used with"),
        (&["--claims", "--from", no_report], &[], 2, "is not a result of"),
        (
            &["--claims", "--from", "/no/such.json"],
            &[],
            2,
            "cannot read the report /no/such.json",
        ),
    ] {
        let output = verify(arguments, dispatcher);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// A copy of tracer in a separate folder, once with an empty PATH and once with a dispatcher on it.
#[test]
fn the_dispatcher_is_found_on_path_or_named() {
    let dir = TempDir::new().expect("a folder");
    let alone = dir.path().join("alone/tracer");
    fs::create_dir(dir.path().join("alone")).expect("a folder");
    fs::copy(place::programs().join("tracer"), &alone).expect("it can be copied");
    let run = |path: &Path| {
        let mut tracer = Command::new(&alone);
        let output = tracer.args(["verify", "--claims"]).env("PATH", path).output();
        let output = output.expect("tracer runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, said) = run(Path::new("/nowhere"));
    assert_eq!(code, Some(127), "{said}");
    assert!(
        said.contains("hsa-dispatch") && said.contains("cargo xtask build"),
        "{said}"
    );

    let program = dir.path().join("hsa-dispatch");
    fs::write(&program, "#!/bin/sh\necho asked for $* >&2\nexit 3\n").expect("it can be written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is there");
    let (code, said) = run(dir.path());
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("asked for compute-only -n 100"), "{said}");
}
