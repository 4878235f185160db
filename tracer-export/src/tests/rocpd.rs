//! rocpd's database, read with SQL.

use rusqlite::Connection;
use rusqlite::types::FromSql;
use serde_json::Value;
use tracer_core::sample;
use tracer_core::tables::{Fact, Table};

use super::{export, recording};
use crate::Written;
use crate::rocpd::Rocpd;

/// Exports rows, and opens the database again.
fn exported(facts: Vec<Fact>) -> (Connection, Written) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let written = export(Box::new(Rocpd::new(&path, &recording::about()).unwrap()), facts);
    // The connection keeps the file.
    (Connection::open(&path).unwrap(), written)
}

fn all<T: FromSql>(database: &Connection, sql: &str) -> Vec<T> {
    let mut statement = database.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn one<T: FromSql>(database: &Connection, sql: &str) -> T {
    let mut all = all(database, sql);
    assert_eq!(all.len(), 1, "{sql}");
    all.remove(0)
}

#[test]
fn kernels_are_the_dispatches_with_a_time_of_the_gpu() {
    let (database, written) = exported(recording::facts());
    let columns = "start || ' ' || \"end\" || ' ' || duration || ' ' || name";
    assert_eq!(
        all::<String>(&database, &format!("SELECT {columns} FROM kernels ORDER BY start")),
        ["11000 13001 2001 scale", "12999 14000 1001 scale"]
    );
    let columns =
        "pid || ' ' || tid || ' ' || grid_x || ' ' || grid_y || ' ' || workgroup_x || ' ' || queue_id || ' ' || stream";
    assert_eq!(
        all::<String>(&database, &format!("SELECT DISTINCT {columns} FROM kernels")),
        ["7 8 1000 2 64 0 stream 0x55"]
    );
    let error =
        "SELECT DISTINCT extdata ->> 'clock_error_ns' || ' ' || (extdata ->> 'grid_x') FROM rocpd_kernel_dispatch";
    assert_eq!(one::<String>(&database, error), "9 1000");
    // The other one is a region without length, when its doorbell rang.
    let regions = "FROM regions WHERE category = 'KERNEL_DISPATCH'";
    assert_eq!(
        one::<String>(&database, &format!("SELECT name {regions}")),
        recording::hostile()
    );
    assert_eq!(
        one::<String>(&database, &format!("SELECT start || ' ' || duration {regions}")),
        "10000 0"
    );
    let row: Value = serde_json::from_str(&one::<String>(&database, &format!("SELECT extdata {regions}"))).unwrap();
    assert_eq!(
        (&row["index"], &row["path"], &row["reserve_ns"]),
        (&1.into(), &"doorbell".into(), &Value::Null)
    );
    assert_eq!(written.without_gpu_time, Some(1));
    assert_eq!(
        (written.rows[&Table::Dispatches], written.rows[&Table::GpuTimes]),
        (3, 2)
    );
}

#[test]
fn the_published_views_answer() {
    let (database, _) = exported(recording::facts());
    let columns = "name || ' ' || total_calls || ' ' || total_duration || ' ' || average || ' ' || percentage";
    assert_eq!(
        one::<String>(&database, &format!("SELECT {columns} FROM top_kernels")),
        "scale 2 3.002 1.501 100.0"
    );
    assert_eq!(one::<i64>(&database, "SELECT GpuTime FROM busy"), 3_002);
    for view in [
        "processes",
        "threads",
        "code_objects",
        "kernel_symbols",
        "regions",
        "region_args",
        "samples",
        "sample_regions",
        "regions_and_samples",
        "kernels",
        "memory_copies",
        "events_args",
        "stream_args",
        "top_kernels",
        "top",
        "busy",
    ] {
        all::<rusqlite::types::Value>(&database, &format!("SELECT * FROM {view}"));
    }
    // Every table is there under both of its names.
    let uuid: String = one(&database, "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'");
    let tables = all::<String>(
        &database,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_%'",
    );
    assert_eq!(tables.len(), 20);
    for table in tables {
        let view = table.strip_suffix(&uuid).unwrap();
        let count = |name: &str| one::<i64>(&database, &format!("SELECT count(*) FROM \"{name}\""));
        assert_eq!(count(view), count(&table));
    }
    assert_eq!(
        all::<i64>(&database, "SELECT 1 FROM pragma_foreign_key_check"),
        [0_i64; 0]
    );
    assert_eq!(one::<String>(&database, "PRAGMA integrity_check"), "ok");
}

#[test]
fn calls_and_copies_and_metadata() {
    let (database, written) = exported(recording::facts());
    let calls = "FROM regions WHERE category = 'HIP_RUNTIME_API' ORDER BY start";
    assert_eq!(
        all::<String>(
            &database,
            &format!("SELECT name || ' ' || start || ' ' || \"end\" || ' ' || stack_id {calls}")
        ),
        [
            "hipModuleLaunchKernel 2000 30001 1",
            "hipModuleLaunchKernel 40000 90000 2"
        ]
    );
    // An ioctl did not return, either.
    assert_eq!(written.unfinished, 2);
    let object = "SELECT DISTINCT value FROM region_args WHERE name = 'object'";
    assert_eq!(one::<String>(&database, object), "0xffffffffffffffff");
    let streams = "SELECT DISTINCT stream_name FROM stream_args";
    assert_eq!(one::<String>(&database, streams), "stream 0x55");
    let copies = "SELECT size || ' ' || name || ' ' || src_agent_type || ' ' || dst_agent_type || ' ' || dst_device FROM memory_copies";
    assert_eq!(
        one::<String>(&database, copies),
        "4096 MEMORY_COPY_HOST_TO_DEVICE CPU GPU gfx1100"
    );
    let metadata = |tag: &str| {
        one::<String>(
            &database,
            &format!("SELECT value FROM rocpd_metadata WHERE tag = '{tag}'"),
        )
    };
    assert_eq!(
        (metadata("schema_version"), metadata("tracer.losses")),
        ("3".into(), "doorbell: 3".into())
    );
    assert_eq!(
        (metadata("tracer.complete"), metadata("tracer.simulated")),
        ("true".into(), "a test".into())
    );
    assert_eq!(metadata("tracer.not_watched"), "kernel_rings");
    let gpu = one::<String>(
        &database,
        "SELECT product_name FROM rocpd_info_agent WHERE type = 'GPU'",
    );
    assert_eq!(gpu, "AMD Radeon RX 7900 XTX (SIMULATED GPU)");
    assert_eq!(
        one::<String>(&database, "SELECT command FROM processes WHERE pid = 7"),
        recording::hostile()
    );
}

#[test]
fn a_dispatch_whose_queue_and_kernel_have_no_rows_is_there() {
    let facts = vec![
        Fact::Dispatch(recording::dispatch(0, 10_000, "scale")),
        Fact::GpuTime(recording::gpu_time(0, 10_000, 11_000, 12_000)),
        Fact::GpuTime(recording::gpu_time(1, 10_000, 12_000, 12_500)),
        Fact::Kernel(sample::kernel(3)),
        Fact::CodeObject(sample::code_object(4)),
    ];
    let (database, written) = exported(facts);
    assert_eq!(
        one::<String>(&database, "SELECT name || ' ' || queue FROM kernels"),
        "scale Queue 0 (SIMULATED GPU)"
    );
    // A time whose dispatch has no row has no grid, so it is no row of kernels.
    let alone = "SELECT start || ' ' || duration FROM regions WHERE category = 'GPU_TIME'";
    assert_eq!(one::<String>(&database, alone), "12000 500");
    assert_eq!(written.rows[&Table::GpuTimes], 2);
    assert_eq!(
        all::<i64>(&database, "SELECT 1 FROM pragma_foreign_key_check"),
        [0_i64; 0]
    );
}
