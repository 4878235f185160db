//! rocpd's database.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::found::{Found, key, number};

/// Returns the rows of a query as pairs of a document and two numbers.
fn rows(database: &Connection, sql: &str) -> Vec<(String, Value, u64, u64)> {
    let mut statement = database.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let rows = statement.query_map([], |row| {
        let bits = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok((row.get(0)?, row.get::<_, String>(1)?, bits(2)?, bits(3)?))
    });
    let rows = rows.expect("it runs").map(|row| row.expect("a row"));
    rows.map(|(name, text, one, two)| (name, serde_json::from_str(&text).expect("JSON"), one, two))
        .collect()
}

pub fn read(file: &Path) -> Found {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
    let broken = database.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0));
    assert_eq!(broken, Ok(0));
    let mut found = Found::default();
    // The view has its own numbers: they must be those of the row.
    let kernels = rows(
        &database,
        "SELECT k.name, d.extdata, k.start, k.\"end\" FROM kernels k JOIN rocpd_kernel_dispatch d ON d.id = k.id \
         WHERE (grid_x, grid_y, grid_z) = (d.extdata ->> 'grid_x', d.extdata ->> 'grid_y', d.extdata ->> 'grid_z') \
         AND (workgroup_x, workgroup_y, workgroup_z) \
         = (d.extdata ->> 'workgroup_x', d.extdata ->> 'workgroup_y', d.extdata ->> 'workgroup_z') \
         AND k.queue_id = d.extdata ->> 'queue' AND k.pid = d.extdata ->> 'pid' AND k.tid = d.extdata ->> 'tid'",
    );
    let all: i64 = database
        .query_row("SELECT count(*) FROM rocpd_kernel_dispatch", [], |row| row.get(0))
        .expect("it counts");
    assert_eq!(kernels.len() as i64, all);
    for (name, row, begin, end) in kernels {
        assert_eq!(row["kernel"], name);
        found.dispatch(&row);
        found.gpu(key(&row), begin, end);
    }
    let summed: i64 = database
        .query_row("SELECT coalesce(sum(total_calls), 0) FROM top_kernels", [], |row| {
            row.get(0)
        })
        .expect("AMD's summary");
    assert_eq!(summed, all);
    for (name, row, begin, end) in rows(
        &database,
        "SELECT name, extdata, start, \"end\" FROM regions WHERE category = 'KERNEL_DISPATCH'",
    ) {
        let known = row["kernel"].as_str().map(str::to_owned);
        let known = known.unwrap_or_else(|| format!("kernel {:#x}", number(&row["kernel_object"])));
        assert_eq!((known, begin), (name, end));
        found.dispatch(&row);
    }
    for (_, row, size, _) in rows(&database, "SELECT 'copy', extdata, size, 0 FROM rocpd_memory_copy") {
        assert_eq!(row["bytes"], size);
        found.copy(&row);
    }
    for (_, row, begin, end) in rows(
        &database,
        "SELECT name, extdata, start, \"end\" FROM regions WHERE category IN ('MEMORY_COPY', 'COPY_BY_KERNEL')",
    ) {
        assert_eq!(begin, end);
        found.copy(&row);
    }
    for (name, row, begin, end) in rows(
        &database,
        "SELECT name, extdata, start, \"end\" FROM regions WHERE category LIKE '%API'",
    ) {
        assert_eq!(
            (row["function"].as_str(), &row["enter_ns"]),
            (Some(name.as_str()), &begin.into())
        );
        assert!(row["exit_ns"].is_null() || row["exit_ns"] == end, "{row}");
        found.call(&name);
    }
    found.sorted()
}
