//! Reports, verdicts and pictures of traces that lack something: what cannot be read, or was not recorded, is unknown and not 0.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tracer_core::tables::Table;
use tracer_e2e::{
    place,
    running::{Program, Recorder, wait_for},
    scenario::{self, Run, Scenario, folder},
    verdict::{rule, verdict},
};

/// Returns a copy of a trace without the folder of a table.
fn without(run: &Run, dir: &TempDir, table: Table) -> PathBuf {
    let (from, to) = (run.trace.dir(), dir.path().join(format!("no-{}.trace", table.name())));
    fs::create_dir(&to).expect("a folder");
    for entry in fs::read_dir(from)
        .expect("a trace")
        .map(|entry| entry.expect("an entry").path())
    {
        let place = to.join(entry.file_name().expect("a name"));
        if entry.is_file() {
            fs::copy(&entry, place).expect("a copy");
        } else if !entry.ends_with(table.name()) {
            fs::create_dir(&place).expect("a folder");
            for part in fs::read_dir(&entry)
                .expect("a folder")
                .map(|part| part.expect("a part").path())
            {
                fs::copy(&part, place.join(part.file_name().expect("a name"))).expect("a copy");
            }
        }
    }
    to
}

fn picture(trace: &Path) -> Value {
    let output = Command::new(place::programs().join("tracer"))
        .args(["top", "--once", "--json"])
        .arg(trace)
        .output()
        .expect("tracer runs");
    serde_json::from_slice(&output.stdout).expect("a picture")
}

#[test]
fn what_cannot_be_read_is_unknown_and_named() {
    let run = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "20"]).record();
    let (dispatches, doorbells) = (run.dispatches().count(), run.doorbells().count());
    assert!(dispatches > 0 && doorbells > 0);
    let dir = folder();
    let [all, rung] = [json!(dispatches), json!(doorbells)];
    // The table, the totals that are unknown without it, and the numbers of dispatches and doorbells.
    for (table, unknown, numbers) in [
        (
            Table::Dispatches,
            &["dispatches", "internal-dispatches", "unseen"][..],
            [&Value::Null, &rung],
        ),
        (
            Table::Queues,
            &["dispatches", "internal-dispatches", "packets", "unseen", "requested"],
            [&Value::Null, &rung],
        ),
        (Table::Doorbells, &["doorbells"], [&all, &Value::Null]),
        (Table::Ioctls, &["ioctls"], [&all, &rung]),
        (Table::Progress, &[], [&all, &rung]),
    ] {
        let trace = without(&run, &dir, table);
        let report = scenario::report(&trace);
        assert_eq!(report["unknown"], json!(unknown), "{table:?}");
        assert_eq!(report["damage"][0]["table"], table.name());
        assert_eq!(
            [&report["dispatches"]["total"], &report["doorbells"]["total"]],
            numbers,
            "{table:?}"
        );
        let hides = |total: &str, value: &Value| {
            assert_eq!(value.is_null(), unknown.contains(&total), "{table:?}: {total}: {value}");
        };
        hides("unseen", &report["unseen"]["total"]);
        hides("dispatches", &report["dispatches"]["by_path"]["doorbell"]);
        hides("ioctls", &report["ioctls"]["total"]);
        assert_eq!(report["complete"], false);
        // The recorder did finish.
        let text = scenario::report_text(&trace);
        assert!(
            text.contains("damaged    table ") && !text.contains("the recorder did not finish"),
            "{text}"
        );
        // The view of the same trace knows as much.
        let picture = picture(&trace);
        assert_eq!(
            [&picture["totals"]["dispatches"], &picture["totals"]["doorbells"]],
            numbers,
            "{table:?}"
        );
        assert_eq!(
            (&picture["complete"], &picture["unread_tables"]),
            (&false.into(), &json!([table.name()]))
        );
        let (code, found) = verdict("mes-bypass", &trace);
        assert_eq!(code, Some(3), "{found:#}");
        if table == Table::Queues {
            let coverage = rule(&found, "coverage");
            assert_eq!(coverage["counts"]["published"], Value::Null, "{coverage:#}");
            let sentence = coverage["sentence"].as_str().expect("a sentence");
            let packets = dispatches
                + run
                    .facts
                    .iter()
                    .filter(|fact| Table::of(fact) == Table::Packets)
                    .count();
            assert!(sentence.contains(&format!("{packets} packets of ")), "{sentence}");
            assert!(!sentence.contains("no packet"), "{sentence}");
        }
    }
}

/// A recorder that is killed takes no last samples: what the GPU took unseen, and which queues were internal, is unknown.
#[test]
fn a_killed_recording_does_not_know_its_end() {
    let program = Program::steady("trixie", "gfx1100", &[]);
    program.goes_on(50);
    let dir = folder();
    let trace = dir.path().join("t.trace");
    let recorder = Recorder::attach(&trace, &[program.pid()], &[]);
    wait_for("the manifest", || {
        let text = fs::read(trace.join("manifest.json")).ok()?;
        let manifest: Value = serde_json::from_slice(&text).ok()?;
        manifest["capabilities"]
            .as_array()?
            .iter()
            .any(|name| name == "unseen")
            .then_some(())
    });
    recorder.kill();
    program.goes_on(50);
    program.stop();
    let report = scenario::report(&trace);
    assert_eq!(report["complete"], false);
    assert!(
        report["capabilities"]
            .as_array()
            .expect("a list")
            .contains(&"unseen".into())
    );
    let dispatches = &report["dispatches"];
    assert_eq!(
        (&dispatches["internal"], &dispatches["by_path"]["unseen"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&report["unseen"]["total"], &report["nothing"]),
        (&Value::Null, &Value::Null)
    );
    // The view of the same trace knows as much.
    let totals = &picture(&trace)["totals"];
    assert_eq!(totals["by_path"], dispatches["by_path"]);
    assert_eq!(totals["dispatches"], dispatches["total"]);
    let (code, found) = verdict("mes-bypass", &trace);
    assert_eq!(code, Some(3), "{found:#}");
    let mut program = program;
    assert!(program.wait().success());
}

/// A process that submits nothing: the report is short, gives the reason, and `verify` does not pass.
#[test]
fn a_recording_of_nothing_says_how_far_the_processes_got() {
    let dir = folder();
    // The runtime starts and lists its agents, and creates no queue.
    let mut idle = vec![place::programs().join("kfd-sim").into_os_string(), "--root".into()];
    idle.push(place::rootfs("trixie").into_os_string());
    idle.extend(["--asic", "gfx1100", "--", "/usr/bin/rocminfo"].map(OsString::from));
    for (name, words, nothing) in [("true", vec!["/bin/true".into()], "no-kfd"), ("idle", idle, "no-queue")] {
        let trace = dir.path().join(name);
        let output = Command::new(place::programs().join("tracer"))
            .args(["record", "-o"])
            .arg(&trace)
            .arg("--")
            .args(words)
            .output()
            .expect("tracer runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let report = scenario::report(&trace);
        assert_eq!(report["nothing"], nothing, "{said}");
        let text = scenario::report_text(&trace);
        for text in [&*said, &text] {
            let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
            assert_eq!(
                (count("nothing "), count("causes "), count("dispatches ")),
                (1, 1, 0),
                "{text}"
            );
            assert!(!text.contains("not watched"), "{text}");
        }
        let (code, found) = verdict("mes-bypass", &trace);
        assert_eq!(code, Some(3), "{found:#}");
        let reason = rule(&found, "dispatches");
        assert_eq!(reason["outcome"], "inconclusive");
        let expected = if nothing == "no-kfd" {
            "/dev/kfd"
        } else {
            "no process created a queue"
        };
        assert!(
            reason["sentence"]
                .as_str()
                .is_some_and(|sentence| sentence.contains(expected)),
            "{reason:#}"
        );
    }
}
