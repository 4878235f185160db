//! `tracer verify --against`: a recording on AMD's runtime, and profiles in rocpd's schema. No result of rocprofv3 was at hand: the
//! dispatches of these profiles are those of the simulator's log.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use rusqlite::Connection;
use serde_json::{Value, json};
use tracer_e2e::{
    place,
    scenario::{Run, Scenario},
    verdict::rule,
};

fn tracer(words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(place::programs().join("tracer"))
        .args(words)
        .output()
        .expect("tracer runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Writes a profile with the program's dispatches that the device took.
fn profile(run: &Run) -> (PathBuf, Connection) {
    let file = run.dir.path().join("results.db");
    let words = ["export", "--format", "rocpd", "-o"];
    let (trace, path) = (run.trace.dir().to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    let (code, _, said) = tracer(&[&words[..], &[path, trace]].concat());
    assert_eq!(code, Some(0), "{said}");
    let database = Connection::open(&file).expect("a database");
    let suffix = suffix(&database);
    let table = format!("rocpd_kernel_dispatch{suffix}");
    database
        .execute(&format!("DELETE FROM \"{table}\""), [])
        .expect("it can be emptied");
    for queue in run
        .queues()
        .filter(|queue| queue.kind == "compute-aql" && queue.internal != Some(true))
    {
        for packet in run
            .truth_of(queue)
            .packets
            .iter()
            .filter(|packet| packet.kind == "kernel_dispatch")
        {
            let inserted = database.execute(
                &format!(
                    "INSERT INTO \"{table}\" (nid, pid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, \"end\", \
                     workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z) \
                     SELECT 1, p.id, 1, k.id, 1, 1, 1, 0, 0, ?3, ?4, ?5, ?6, ?7, ?8 FROM \"rocpd_info_process{suffix}\" p \
                     JOIN \"rocpd_info_kernel_symbol{suffix}\" k ON k.pid = p.id WHERE p.pid = ?1 AND k.kernel_object = ?2 LIMIT 1"
                ),
                rusqlite::params![
                    queue.pid,
                    packet.kernel_object.cast_signed(),
                    packet.workgroup[0],
                    packet.workgroup[1],
                    packet.workgroup[2],
                    packet.grid[0],
                    packet.grid[1],
                    packet.grid[2],
                ],
            );
            assert_eq!(inserted, Ok(1), "{packet:?}");
        }
    }
    (file, database)
}

/// Returns the rule's verdict.
fn compare(run: &Run, file: &Path) -> Value {
    let (trace, file) = (run.trace.dir().to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    let words = ["verify", "--format", "json", "--against", file, trace];
    let (_, verdict, said) = tracer(&words);
    let verdict: Value = serde_json::from_str(&verdict).unwrap_or_else(|error| panic!("{error}: {said}"));
    rule(&verdict, "profile").clone()
}

/// Returns the end of the names of the tables.
fn suffix(database: &Connection) -> String {
    let table = "SELECT substr(name, length('rocpd_kernel_dispatch') + 1) FROM sqlite_schema WHERE type = 'table' AND name LIKE \
        'rocpd_kernel_dispatch_%'";
    database.query_row(table, [], |row| row.get(0)).expect("the suffix")
}

fn change(database: &Connection, sql: &str) {
    let suffix = suffix(database);
    let changed = database.execute(&sql.replace('@', &suffix), []);
    assert!(changed.is_ok_and(|rows| rows > 0), "{sql}");
}

#[test]
fn dispatches_that_only_one_has_are_found() {
    let run = Scenario::new("trixie", "gfx1100", &["mixed"]).record();
    let (file, database) = profile(&run);
    let own = run.did()["dispatches"].as_u64().expect("a number");
    let found = compare(&run, &file);
    let counts = |both: u64, trace: u64, profile: u64| json!({"both": both, "trace_only": trace, "profile_only": profile, "internal": found["counts"]["internal"]});
    assert_eq!(
        (&found["outcome"], &found["counts"]),
        (&json!("pass"), &counts(own, 0, 0)),
        "{found:#}"
    );

    change(
        &database,
        "DELETE FROM \"rocpd_kernel_dispatch@\" WHERE id = (SELECT min(id) FROM \"rocpd_kernel_dispatch@\")",
    );
    let found = compare(&run, &file);
    assert_eq!(
        (&found["outcome"], &found["counts"]),
        (&json!("fail"), &counts(own - 1, 1, 0)),
        "{found:#}"
    );
    let what = found["offenders"][0]["what"].as_str().expect("a text");
    assert!(what.ends_with("in the trace only") && !what.contains("0x"), "{what}");

    change(
        &database,
        "UPDATE \"rocpd_kernel_dispatch@\" SET grid_size_x = 77 WHERE id = (SELECT min(id) FROM \"rocpd_kernel_dispatch@\")",
    );
    let found = compare(&run, &file);
    assert_eq!(
        (&found["outcome"], &found["counts"]),
        (&json!("fail"), &counts(own - 2, 2, 1)),
        "{found:#}"
    );

    // A kernel without its object cannot be compared.
    change(
        &database,
        "UPDATE \"rocpd_info_kernel_symbol@\" SET kernel_object = NULL",
    );
    assert_eq!(compare(&run, &file)["counts"]["both"], json!(0));

    // The profile of another run.
    change(&database, "UPDATE \"rocpd_info_process@\" SET pid = 1");
    let found = compare(&run, &file);
    assert_eq!(
        (&found["outcome"], &found["counts"]["both"]),
        (&json!("inconclusive"), &json!(0)),
        "{found:#}"
    );
}

#[test]
fn files_of_other_kinds_are_refused() {
    let run = Scenario::new("trixie", "gfx1100", &["mixed"]).record();
    let trace = run.trace.dir().to_str().expect("UTF-8");
    let no_table = run.dir.path().join("empty.db");
    Connection::open(&no_table)
        .and_then(|database| database.execute_batch("CREATE TABLE t (a)"))
        .expect("a database");
    for file in [no_table.as_path(), Path::new("/etc/passwd"), Path::new("/nonexistent")] {
        let (code, _, said) = tracer(&["verify", "--against", file.to_str().expect("UTF-8"), trace]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("rocpd"), "{said}");
    }
}
