//! Runtimes in unusual forms: with all addresses changed, without the parts that the resolver searches for, or with names.

use tracer_core::family::Family;

#[path = "../../../tracer-capture/tests/resolver/names.rs"]
mod names;
#[expect(dead_code, reason = "the resolver's own tests need more of it")]
#[path = "../../../tracer-capture/tests/resolver/patch.rs"]
mod patch;
#[path = "../../../tracer-capture/tests/resolver/shift.rs"]
mod shift;

use std::{fs, path::Path};

use patch::Patched;
use serde_json::Value;
use tempfile::TempDir;
use tracer_e2e::{
    compare, observed, place,
    running::Program,
    scenario::{Run, Scenario, each_release, folder},
};

/// Returns the runtime of a release.
fn installed(suite: &str) -> Patched {
    let path = place::rootfs(suite).join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
    Patched(fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Records a workload with that runtime, at an unexpected path.
fn record(suite: &'static str, asic: &'static str, library: &Patched, workload: &[&'static str]) -> Run {
    record_with(Scenario::new(suite, asic, workload), library, |_| ())
}

/// Does the same, with more files in the run's folder.
fn record_with(mut scenario: Scenario, library: &Patched, prepare: impl FnOnce(&Path)) -> Run {
    let dir = folder();
    prepare(dir.path());
    let path = dir.path().join("not called like a runtime");
    fs::write(&path, &library.0).expect("a copy of the runtime");
    let path: &'static str = path.display().to_string().leak();
    scenario.workload.extend(["--library", path]);
    let output = scenario.command(&dir).output().expect("tracer runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{scenario:?}: {}:\n{said}", output.status);
    Run::read(dir, output)
}

/// Returns step and confidence of each doorbell probe, and its purpose.
fn probes(run: &Run) -> Vec<(String, String, String)> {
    let probes = run.trace.manifest().probes.iter();
    let of_doorbells = probes.filter(|probe| probe.family == Family::Doorbell && probe.attached);
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    of_doorbells
        .map(|probe| (word(&probe.resolver), word(&probe.confidence), probe.symbol.clone()))
        .collect()
}

/// The debug file is beside the library, in the namespace of the traced process.
#[test]
fn a_debug_file_beside_the_library_names_its_functions() {
    for (suite, asic) in each_release(0).take(2) {
        let library = installed(suite);
        let known = tracer_capture::runtime::resolver::resolve(&library.0).expect("a runtime");
        let debug = names::debug_file(&library.0, &names::symbols(&known));
        let linked = library.link_debug_file("names.debug", names::crc32(&debug));
        let scenario = Scenario::new(suite, asic, &["compute-only", "-n", "20"]);
        let run = record_with(scenario, &linked, |dir| {
            fs::write(dir.join("names.debug"), &debug).expect("a debug file");
        });
        compare::all(&run);
        let probes = probes(&run);
        assert_eq!(probes.len(), known.doorbells.len(), "{suite}");
        for (step, confidence, _) in probes {
            assert_eq!((step.as_str(), confidence.as_str()), ("debug-file", "high"), "{suite}");
        }
    }
}

#[test]
fn a_runtime_whose_addresses_all_differ_is_traced_alike() {
    for (suite, asic) in each_release(1) {
        let shifted = installed(suite).shift(0x0123_4000, 0x3000);
        let run = record(suite, asic, &shifted, &["compute-only", "-n", "40"]);
        let compared = compare::all(&run);
        assert!(compared.dispatches >= 40, "{suite}: {compared:?}");
        for (step, confidence, _) in probes(&run) {
            assert_eq!(
                (step.as_str(), confidence.as_str()),
                ("vtable-shape", "medium"),
                "{suite}"
            );
        }
    }
}

/// The loader ignores section names, and the resolver finds no vtable. SDMA and reserves are seen as usual, and doorbells where the
/// program calls the API.
#[test]
fn the_last_resort_sees_what_the_program_rings_and_says_what_it_does_not() {
    // Copies by kernels are among these: they are the runtime's own dispatches.
    let mixed = each_release(0).map(|(suite, asic)| (suite, asic, vec!["mixed"]));
    // In 7.2.4, the two functions that ring have nothing in common.
    let relaxed = vec!["burst", "-n", "2000", "--doorbell-op", "relaxed"];
    for (suite, asic, workload) in mixed.chain([("experimental", "gfx942", relaxed)]) {
        let hidden = installed(suite).rename_section(".data.rel.ro", ".data.rel.xx");
        let run = record(suite, asic, &hidden, &workload);
        let (compared, of_runtime) = compare::of_program(&run);
        println!("{suite} {asic} {workload:?}: {compared:?}, {of_runtime} packets of the runtime's own queues");
        assert!(
            compared.dispatches > 0 && compared.doorbells > 0,
            "{suite}: {compared:?}"
        );
        last_resort(suite, &run, "api-table");
    }
}

/// A tool has replaced the runtime's functions in the API table of a process that tracer attaches to. The exported functions are
/// then the last resort. (In a process that starts under the recorder, tracer reads the table before tools change it.)
#[test]
fn behind_a_tool_the_exported_functions_are_the_last_resort() {
    for (suite, asic) in each_release(1) {
        let dir = folder();
        let library = dir.path().join("runtime");
        let hidden = installed(suite).rename_section(".data.rel.ro", ".data.rel.xx");
        fs::write(&library, &hidden.0).expect("a copy of the runtime");
        let library: &'static str = library.display().to_string().leak();
        let scenario = Scenario::new(suite, asic, &["steady", "--library", library]).intercepted("stores");
        let run = Program::of(dir, &scenario).to_the_end(&[]);
        let found = observed::adopted(&run, true);
        println!("{suite} {asic}: {found:?}");
        assert!(found.claimed >= 500, "{suite}: {found:?}");
        last_resort(suite, &run, "export");
    }
}

fn last_resort(suite: &str, run: &Run, step: &str) {
    let probes = probes(run);
    assert_eq!(probes.len(), 2, "{suite}: {probes:?}");
    for (taken, confidence, symbol) in &probes {
        assert_eq!((taken.as_str(), confidence.as_str()), (step, "low"), "{suite}");
        assert!(symbol.contains("hsa_signal_store_"), "{suite}: {symbol}");
    }
    let said = String::from_utf8_lossy(&run.output.stderr);
    for words in [
        "those that the runtime rings itself",
        "watched only some of the doorbells",
    ] {
        assert!(said.contains(words), "{suite}: {said}");
    }
    let warnings = &run.trace.manifest().warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains("hsa_signal_store_*")),
        "{warnings:?}"
    );
    // tracer did not count all of them.
    assert_eq!(run.report["dispatches"]["total"], Value::Null);
    assert_eq!(run.report["doorbells"]["total"], Value::Null);
}

#[test]
fn doctor_tells_every_decision() {
    let dir = TempDir::with_prefix("tracer-e2e-").expect("a temporary directory");
    let hidden = dir.path().join("hidden.so");
    let library = installed("trixie").rename_section(".data.rel.ro", ".data.rel.xx");
    fs::write(&hidden, library.0).expect("a copy of the runtime");
    let decisions = |path: &Path| -> Vec<(String, String, String)> {
        let output = std::process::Command::new(place::programs().join("tracer"))
            .args(["doctor", "--json", "--library"])
            .arg(path)
            .output()
            .expect("tracer runs");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let account = found["libraries"][0]["account"].as_array().expect("an account").clone();
        let word = |decision: &Value, key: &str| decision[key].as_str().expect("a word").to_owned();
        account
            .iter()
            .map(|d| (word(d, "sought"), word(d, "step"), word(d, "outcome")))
            .collect()
    };
    let expect = |found: &[(String, String, String)], wanted: [&str; 3]| {
        let there = found.iter().any(|(a, b, c)| [a.as_str(), b, c] == wanted);
        assert!(there, "{wanted:?} is not among {found:?}");
    };
    let whole = decisions(&place::rootfs("trixie").join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1"));
    expect(&whole, ["doorbells", "symtab", "absent"]);
    expect(&whole, ["doorbells", "debug-file", "absent"]);
    expect(&whole, ["doorbells", "vtable-shape", "used"]);
    expect(&whole, ["own-reserve", "vtable-shape", "used"]);
    expect(&whole, ["sdma", "code-pattern", "used"]);
    expect(&whole, ["doorbells", "api-table", "not-tried"]);
    let without = decisions(&hidden);
    expect(&without, ["doorbells", "vtable-shape", "absent"]);
    expect(&without, ["doorbells", "api-table", "used"]);
}
