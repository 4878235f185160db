//! Formats that have the rows as they are.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tracer_core::tables::Table;

use super::found::{Found, key, number};

/// Returns what rows say. They come with the names of their tables.
fn of(rows: &[(String, Value)]) -> Found {
    let mut found = Found::default();
    for (table, row) in rows {
        match table.as_str() {
            "dispatches" => found.dispatch(row),
            "copies" => found.copy(row),
            "api_calls" => found.call(row["function"].as_str().expect("a function")),
            _ => {}
        }
    }
    for (_, row) in rows
        .iter()
        .filter(|(table, row)| table == "gpu_times" && !row["start_ns"].is_null())
    {
        found.gpu(key(row), number(&row["start_ns"]), number(&row["end_ns"]));
    }
    found.sorted()
}

pub fn jsonl(file: &Path) -> Found {
    let text = fs::read_to_string(file).expect("the file");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let first = lines.next().expect("the first line");
    assert!(first["manifest"]["simulated"].is_string(), "{first}");
    let rows = lines.map(|row| (row["table"].as_str().expect("a table").to_owned(), row));
    of(&rows.collect::<Vec<_>>())
}

pub fn csv(folder: &Path) -> Found {
    let manifest = fs::read(folder.join("manifest.json")).expect("the manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    assert!(manifest["simulated"].is_string(), "{manifest}");
    let mut rows = Vec::new();
    for table in Table::ALL {
        let count = manifest["rows"].get(table.name()).map_or(0, number);
        let file = folder.join(format!("{}.csv", table.name()));
        assert_eq!(file.exists(), count > 0, "{}", table.name());
        if count == 0 {
            continue;
        }
        let mut reader = ::csv::Reader::from_path(file).expect("the file");
        let columns = reader.headers().expect("a header").clone();
        let before = rows.len() as u64;
        for row in reader.records() {
            let row = row.expect("a row");
            let cells = columns.iter().zip(&row).map(|(column, cell)| {
                let value = if cell.is_empty() { Value::Null } else { cell.into() };
                (column.to_owned(), value)
            });
            rows.push((table.name().to_owned(), Value::Object(cells.collect())));
        }
        assert_eq!(rows.len() as u64, before + count);
    }
    of(&rows)
}
