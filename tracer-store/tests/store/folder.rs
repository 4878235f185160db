//! Where a trace may be written, and what happens to the files that were there.

use std::fs;
use std::path::Path;

use tracer_core::tables::Table;
use tracer_store::{State, StoreError, Trace, TraceWriter, Written};

use crate::support::{dispatch, files, manifest, rows};

fn record(dir: &Path, dispatches: u64, overwrite: bool) -> Result<Written, StoreError> {
    let mut writer = TraceWriter::create(dir, manifest(), overwrite)?;
    (0..dispatches).for_each(|index| writer.push(&dispatch(index, index)));
    writer.finish(|manifest| manifest.complete = true)
}

#[test]
fn a_trace_is_overwritten_only_on_request() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("deep/app.trace");
    record(&dir, 5, false).unwrap();
    let refused = record(&dir, 3, false).unwrap_err();
    assert!(matches!(refused, StoreError::Exists(_)), "{refused}");
    assert!(refused.to_string().contains("--overwrite"), "{refused}");
    assert_eq!(rows(&dir, Table::Dispatches).len(), 5);
    record(&dir, 3, true).unwrap();
    assert_eq!(rows(&dir, Table::Dispatches).len(), 3);
    assert_eq!(files(&dir), ["dispatches", "manifest.json"]);
}

#[test]
fn overwriting_removes_what_a_trace_has_and_no_other_file() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("app.trace");
    record(&dir, 5, false).unwrap();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    fs::write(dir.join("dispatches/notes.txt"), "mine").unwrap();
    fs::write(dir.join("dispatches/.part-000009.parquet.tmp"), "left behind").unwrap();
    record(&dir, 0, true).unwrap();
    assert_eq!(files(&dir), ["dispatches", "manifest.json", "notes.txt"]);
    assert_eq!(files(&dir.join("dispatches")), ["notes.txt"]);
}

#[test]
fn what_is_no_trace_is_never_touched() {
    let temporary = tempfile::tempdir().unwrap();
    let foreign = temporary.path().join("project");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("manifest.json"), r#"{"name": "a web application"}"#).unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "text").unwrap();
    for path in [&foreign, &file] {
        for overwrite in [false, true] {
            let refused = record(path, 1, overwrite).unwrap_err();
            assert!(matches!(refused, StoreError::Foreign(_)), "{refused}");
        }
        let refused = Trace::open(path).unwrap_err();
        assert!(matches!(refused, StoreError::NotATrace { .. }), "{refused}");
    }
    assert_eq!(files(&foreign), ["manifest.json"]);
}

#[test]
fn an_empty_folder_will_do() {
    let temporary = tempfile::tempdir().unwrap();
    record(temporary.path(), 1, false).unwrap();
    assert_eq!(Trace::open(temporary.path()).unwrap().state(), State::Complete);
}

#[test]
fn two_recorders_do_not_share_a_trace() {
    let temporary = tempfile::tempdir().unwrap();
    let writer = TraceWriter::create(temporary.path(), manifest(), false).unwrap();
    assert_eq!(Trace::open(temporary.path()).unwrap().state(), State::Recording);
    let refused = record(temporary.path(), 1, true).unwrap_err();
    assert!(matches!(refused, StoreError::Busy(_)), "{refused}");
    drop(writer);
    assert_eq!(Trace::open(temporary.path()).unwrap().state(), State::Interrupted);
    record(temporary.path(), 1, true).unwrap();
}

#[test]
fn a_missing_trace_says_how_to_make_one() {
    let missing = Trace::open(Path::new("/nowhere/app.trace")).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "no trace at /nowhere/app.trace; check the path, or record one with `tracer record -o /nowhere/app.trace`"
    );
}

#[test]
fn manifests_of_other_versions() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("manifest.json");
    record(temporary.path(), 1, false).unwrap();
    let text = fs::read_to_string(&path).unwrap();

    let newer_minor = text.replacen('{', r#"{"weather": {"rain": true},"#, 1);
    fs::write(&path, newer_minor).unwrap();
    assert_eq!(Trace::open(temporary.path()).unwrap().manifest().format_version(), 2);

    fs::write(
        &path,
        r#"{"format": "tracer-trace", "format_version": 3, "tool": "changed"}"#,
    )
    .unwrap();
    let refused = Trace::open(temporary.path()).unwrap_err();
    assert!(
        matches!(refused, StoreError::Version { found: 3, known: 2, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("upgrade tracer"), "{refused}");

    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let refused = Trace::open(temporary.path()).unwrap_err();
    assert!(
        matches!(&refused, StoreError::Manifest { path: named, .. } if *named == path),
        "{refused}"
    );
    assert!(matches!(record(temporary.path(), 1, true), Err(StoreError::Foreign(_))));
}
