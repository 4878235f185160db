//! Answers equal the rows that were written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tracer_core::sample;
use tracer_core::tables::{Fact, Kind, Loss, Record, Table};
use tracer_query::{Cell, Origin, Outcome, QueryError, run};
use tracer_store::manifest::{ClockSnapshot, Host, Target, Tool};
use tracer_store::{Manifest, Trace, TraceWriter};

fn manifest(host: &str, started_ns: u64) -> Manifest {
    let tool = Tool {
        name: "tracer".into(),
        version: "0.1.0".into(),
    };
    let argv = vec!["./app".into(), "7".into()];
    let host = Host {
        name: host.into(),
        ..Host::default()
    };
    let started = ClockSnapshot {
        monotonic_ns: started_ns,
        ..ClockSnapshot::now()
    };
    Manifest::new(tool, host, Target::Command { argv }, started)
}

fn write(dir: &Path, host: &str, facts: &[Fact]) -> Origin {
    let mut writer = TraceWriter::create(dir, manifest(host, 5), false).expect("a new trace");
    facts.iter().for_each(|fact| writer.push(fact));
    let written = writer.finish(|manifest| {
        manifest.complete = true;
        manifest.capabilities = vec!["packets".into(), "doorbells".into()];
    });
    assert_eq!(written.expect("written").dropped, 0);
    Origin {
        name: dir.file_name().expect("a name").to_string_lossy().into_owned(),
        trace: Trace::open(dir).expect("a trace"),
    }
}

/// Facts of most tables.
fn facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = (0..100)
        .map(|at| Fact::Dispatch(sample::dispatch(at, 100 + at)))
        .collect();
    facts.extend((0..40).map(|at| Fact::Doorbell(sample::doorbell(at, 100 + at))));
    facts.extend([
        Fact::Queue(sample::queue(100)),
        Fact::Process(sample::process(7)),
        Fact::Packet(sample::unread(100, 3, 300)),
        Fact::Copy(sample::copy(310)),
        Fact::CodeObject(sample::code_object(1)),
        Fact::Kernel(sample::kernel(1)),
        Fact::Loss(Loss {
            time_ns: 50,
            source: "a \"source\"\n".to_owned(),
            count: u64::MAX,
        }),
    ]);
    facts
}

/// Returns the rows of an answer as objects.
fn rows(traces: &[Origin], sql: &str) -> (Vec<BTreeMap<String, Value>>, Outcome) {
    let mut rows = Vec::new();
    let outcome = run(traces, sql, |batch| {
        let names: Vec<String> = batch.names().map(str::to_owned).collect();
        rows.extend((0..batch.rows()).map(|row| names.iter().cloned().zip(batch.row(row).map(value)).collect()));
        true
    });
    (rows, outcome.expect("an answer"))
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value),
        Cell::Int(number) => u64::try_from(number).map_or_else(|_| json!(number as i64), |number| json!(number)),
        Cell::Float(number) => json!(number),
        Cell::Text(text) => json!(text),
        Cell::Bytes(bytes) => json!(bytes),
    }
}

#[test]
fn every_cell_of_every_table_is_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let facts = facts();
    let trace = write(&dir.path().join("a.trace"), "gpu-1", &facts);
    let mut compared = 0;
    for table in Table::ALL {
        let order = table.time_column();
        let (found, _) = rows(
            std::slice::from_ref(&trace),
            &format!("select * from {} order by {order}", table.name()),
        );
        let mut written: Vec<&Fact> = facts.iter().filter(|fact| Table::of(fact) == table).collect();
        written.sort_by_key(|fact| Record::of(fact).number(order));
        assert_eq!(found.len(), written.len(), "{table:?}");
        for (found, fact) in found.iter().zip(written) {
            let expected = serde_json::to_value(Record::of(fact)).unwrap();
            for column in table.columns().iter().filter(|column| column.kind != Kind::Bytes) {
                assert_eq!(found[column.name], expected[column.name], "{table:?}.{}", column.name);
                compared += 1;
            }
            assert_eq!((&found["trace"], &found["host"]), (&json!("a.trace"), &json!("gpu-1")));
        }
    }
    assert!(compared > 3000, "{compared}");
}

#[test]
fn several_traces_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let one = write(&dir.path().join("1"), "gpu-1", &facts());
    let two = write(&dir.path().join("2"), "gpu-2", &facts()[..30]);
    let traces = [one, two];
    let (found, outcome) = rows(
        &traces,
        "select host, trace, count(*) as n, sum(index) as s from dispatches group by host, trace order by host",
    );
    let of = |host: &str, trace: &str, n: u64, sum: u64| {
        let row = [
            ("host", json!(host)),
            ("trace", json!(trace)),
            ("n", json!(n)),
            ("s", json!(sum)),
        ];
        BTreeMap::from(row.map(|(name, value)| (name.to_owned(), value)))
    };
    assert_eq!(found, [of("gpu-1", "1", 100, 4950), of("gpu-2", "2", 30, 435)]);
    // Only the first has a loss, which its manifest does not count.
    assert_eq!(outcome.notes, [""; 0]);
    let (found, _) = rows(
        &traces,
        "select trace, host, command, complete, lost, watched, started_ns from traces",
    );
    assert_eq!(found.len(), 2);
    assert_eq!(found[1]["command"], "./app 7");
    assert_eq!((&found[1]["complete"], &found[1]["lost"]), (&json!(true), &json!(0)));
    assert_eq!(
        (&found[1]["watched"], &found[1]["started_ns"]),
        (&json!("packets doorbells"), &json!(5))
    );
    // Names are not case-sensitive where the query joins and nests tables.
    let (found, _) = rows(
        &traces,
        "with d as (select trace, index from Dispatches) select count(*) as n from d join doorbells b \
         on d.index = b.value and d.trace = b.trace",
    );
    assert_eq!(found[0]["n"], 40);
}

#[test]
fn what_rows_do_not_show_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut all = facts();
    all.push(Fact::DispatchRun(sample::dispatch_run(200, 50, 400)));
    let origin = write(&path, "gpu-1", &all);
    let notes = |sql: &str| rows(std::slice::from_ref(&origin), sql).1.notes;
    assert_eq!(notes("select count(*) from doorbells"), [""; 0]);
    let [runs] = &notes("select count(*) from dispatches")[..] else {
        panic!()
    };
    assert!(runs.contains("dispatch_runs"), "{runs}");
    let [rings] = &notes("select count(*) from ring_jobs")[..] else {
        panic!()
    };
    assert!(rings.contains("kernel_rings not watched"), "{rings}");
    // A part that is not as it was written is left out, and named.
    let part = fs::read_dir(path.join("doorbells")).unwrap().next().unwrap().unwrap();
    fs::write(part.path(), "no Parquet").unwrap();
    let (found, outcome) = rows(std::slice::from_ref(&origin), "select count(*) as n from doorbells");
    assert_eq!(found[0]["n"], 0);
    let [left_out] = &outcome.notes[..] else {
        panic!("{outcome:?}")
    };
    assert!(
        left_out.contains(&part.file_name().into_string().unwrap()),
        "{left_out}"
    );
    // So is a recorder that did not finish.
    fs::remove_dir_all(path.join("doorbells")).unwrap();
    let killed = dir.path().join("killed");
    TraceWriter::create(&killed, manifest("gpu-1", 5), false)
        .unwrap()
        .finish(|_| ())
        .unwrap();
    let killed = Origin {
        name: "killed".into(),
        trace: Trace::open(&killed).unwrap(),
    };
    let (found, outcome) = rows(&[killed], "select lost from traces");
    assert_eq!(found[0]["lost"], Value::Null);
    assert!(
        outcome.notes.iter().any(|note| note.starts_with("not complete")),
        "{outcome:?}"
    );
}

#[test]
fn a_column_that_an_older_version_did_not_write_is_null() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tracer-store/tests/fixtures");
    let mut traces = Vec::new();
    for entry in fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        if path.join("dispatches").is_dir() {
            traces.push(Origin {
                name: path.display().to_string(),
                trace: Trace::open(&path).unwrap(),
            });
        }
    }
    assert!(!traces.is_empty());
    for table in Table::ALL {
        let read = |origin: &Origin| {
            origin
                .trace
                .facts(&[table])
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        };
        let written: usize = traces.iter().map(|origin| read(origin).len()).sum();
        let (found, _) = rows(&traces, &format!("select * from {}", table.name()));
        // A killed recorder leaves several rows of a queue or a process.
        assert!(found.len() >= written, "{table:?}: {} of {written}", found.len());
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
        assert!(
            found
                .iter()
                .all(|row| columns.iter().all(|name| row.contains_key(*name)))
        );
    }
}

#[test]
fn a_reader_that_has_enough_ends_the_query() {
    let dir = tempfile::tempdir().unwrap();
    let facts: Vec<Fact> = (0..100_000)
        .map(|at| Fact::Dispatch(sample::dispatch(at, at)))
        .collect();
    let origin = write(&dir.path().join("t"), "gpu-1", &facts);
    let mut taken = 0;
    run(std::slice::from_ref(&origin), "select index from dispatches", |batch| {
        taken += batch.rows();
        taken == 0
    })
    .expect("an answer");
    assert!(0 < taken && taken < facts.len(), "{taken}");
    let (found, _) = rows(&[origin], "select index from dispatches");
    let indexes = found.iter().map(|row| row["index"].as_u64());
    assert!(indexes.eq((0..100_000).map(Some)), "in the order of the table");
}

#[test]
fn a_query_that_cannot_run_is_an_error_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let origin = write(&dir.path().join("t"), "gpu-1", &facts());
    for (sql, word) in [
        ("selec", "selec"),
        ("select nope from dispatches", "nope"),
        ("select * from nope", "nope"),
        ("select sum(x) from", "identifier"),
    ] {
        let error = run(std::slice::from_ref(&origin), sql, |_| true).expect_err(sql);
        assert!(matches!(error, QueryError::Sql(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(word) && text.lines().count() == 1, "{text}");
    }
}
