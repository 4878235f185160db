//! What an export says, in the same form for every format.

use std::collections::BTreeMap;

use serde_json::Value;

/// What an export says.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// Dispatches by queue and index.
    pub dispatches: BTreeMap<(u32, u64), Dispatched>,
    /// Copies and fills, in the order of their times.
    pub copies: Vec<Copied>,
    /// Calls by function.
    pub calls: BTreeMap<String, u64>,
}

/// A dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatched {
    pub kernel: String,
    pub path: String,
    pub grid: [u32; 3],
    pub workgroup: [u32; 3],
    pub time_ns: u64,
    /// Start and end on the GPU, if they are known.
    pub gpu: Option<(u64, u64)>,
}

/// A copy or a fill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copied {
    pub time_ns: u64,
    pub by_kernel: bool,
    pub bytes: Option<u64>,
    pub direction: Option<String>,
}

impl Found {
    pub fn sorted(mut self) -> Self {
        self.copies.sort();
        self
    }

    /// Adds a dispatch by the columns of its row.
    pub fn dispatch(&mut self, row: &Value) {
        let dispatched = Dispatched {
            kernel: row["kernel"].as_str().unwrap_or_default().to_owned(),
            path: row["path"].as_str().expect("a path").to_owned(),
            grid: ["grid_x", "grid_y", "grid_z"].map(|column| number(&row[column]) as u32),
            workgroup: ["workgroup_x", "workgroup_y", "workgroup_z"].map(|column| number(&row[column]) as u32),
            time_ns: number(&row["time_ns"]),
            gpu: None,
        };
        let key = key(row);
        assert!(
            self.dispatches.insert(key, dispatched).is_none(),
            "{key:?} is there twice"
        );
    }

    /// Adds the time of a dispatch.
    pub fn gpu(&mut self, (queue, index): (u32, u64), begin: u64, end: u64) {
        let of = self.dispatches.get_mut(&(queue, index)).expect("its dispatch");
        assert!(of.gpu.replace((begin, end)).is_none(), "{of:?} has two times");
    }

    /// Adds a copy by the columns of its row.
    pub fn copy(&mut self, row: &Value) {
        self.copies.push(Copied {
            time_ns: number(&row["time_ns"]),
            by_kernel: row["by"] == "kernel",
            bytes: optional(&row["bytes"]),
            direction: row["direction"].as_str().map(str::to_owned),
        });
    }

    pub fn call(&mut self, function: &str) {
        *self.calls.entry(function.to_owned()).or_default() += 1;
    }
}

/// Returns the queue and index of a row.
pub fn key(row: &Value) -> (u32, u64) {
    (number(&row["queue"]) as u32, number(&row["index"]))
}

/// Returns a number, which some formats have as text.
pub fn number(value: &Value) -> u64 {
    optional(value).unwrap_or_else(|| panic!("{value} is no number"))
}

fn optional(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
