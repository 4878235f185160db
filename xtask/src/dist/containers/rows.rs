//! Dispatches, as the simulator logged them and as a trace has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// One dispatch, by all its fields that both have.
pub type Row = [u64; 12];

/// Asks a trace for the fields of [`Row`].
pub const QUERY: &str = "select d.pid, q.queue_id, d.\"index\", d.kernel_object, d.kernarg, d.grid_x, d.grid_y, d.grid_z, \
    d.workgroup_x, d.workgroup_y, d.workgroup_z, d.completion_signal from dispatches d join queues q on d.queue = q.queue";
/// Their names in the answer.
const COLUMNS: [&str; 12] = [
    "pid",
    "queue_id",
    "index",
    "kernel_object",
    "kernarg",
    "grid_x",
    "grid_y",
    "grid_z",
    "workgroup_x",
    "workgroup_y",
    "workgroup_z",
    "completion_signal",
];
/// Their places in the simulator's log.
const LOGGED: [&str; 12] = [
    "/pid",
    "/queue_id",
    "/index",
    "/kernel_object",
    "/kernarg_address",
    "/grid/0",
    "/grid/1",
    "/grid/2",
    "/workgroup/0",
    "/workgroup/1",
    "/workgroup/2",
    "/completion_signal",
];

/// Returns the dispatches of the simulator's log, sorted.
pub fn logged(log: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(log)?;
    let events = text.lines().map(serde_json::from_str::<Value>);
    let mut rows = Vec::new();
    for event in events {
        let event = event.context("the simulator's log")?;
        if event["ev"] == "packet" && event["kind"] == "kernel_dispatch" {
            rows.push(row(&LOGGED, |place| event.pointer(place))?);
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Returns the dispatches in the answer to [`QUERY`] as JSON lines, sorted.
pub fn recorded(answer: &str) -> Result<Vec<Row>> {
    let lines = answer.lines().filter(|line| line.starts_with('{'));
    let mut rows = Vec::new();
    for line in lines {
        let value: Value = serde_json::from_str(line)?;
        rows.push(row(&COLUMNS, |name| value.get(name))?);
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Returns the ids of the processes that dispatched.
pub fn processes(rows: &[Row]) -> BTreeSet<u64> {
    rows.iter().map(|row| row[0]).collect()
}

fn row<'a>(names: &[&str; 12], find: impl Fn(&str) -> Option<&'a Value>) -> Result<Row> {
    let mut row = Row::default();
    for (place, name) in row.iter_mut().zip(names) {
        *place = find(name)
            .and_then(Value::as_u64)
            .with_context(|| format!("a dispatch has no {name}"))?;
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_the_same_fields() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("truth");
        let packet = r#"{"ev":"packet","pid":5,"queue_id":1,"index":7,"kind":"kernel_dispatch","kernel_object":9,"kernarg_address":10,"grid":[100,1,1],"workgroup":[64,1,1],"completion_signal":0}"#;
        fs::write(&log, format!("{{\"ev\":\"start\"}}\n{packet}\n")).expect("a log");
        let answer = r#"{"pid":5,"queue_id":1,"index":7,"kernel_object":9,"kernarg":10,"grid_x":100,"grid_y":1,"grid_z":1,"workgroup_x":64,"workgroup_y":1,"workgroup_z":1,"completion_signal":0}"#;
        let logged = logged(&log).expect("rows");
        assert_eq!(logged, [[5, 1, 7, 9, 10, 100, 1, 1, 64, 1, 1, 0]]);
        assert_eq!(
            recorded(&format!("[WARN ] simulated\n{answer}\n")).expect("rows"),
            logged
        );
    }
}
