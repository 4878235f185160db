//! A recording as figures: what each row of each table has, and what is not known of it.

mod rows;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::{Domain, Figure, Table};
use crate::analysis::Answers;
use crate::summary::{Capabilities, Report};
use crate::tables;

/// What was recorded, where, and how much of it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The trace.
    pub trace: String,
    /// The command, or what the recording was attached to.
    pub target: String,
    /// How the command ended; `null` if the target is no command, or its end is unknown.
    pub ended: Option<String>,
    /// Whether the target is a command that was recorded from its start to its end. Otherwise counts depend on the length of the
    /// recording.
    pub whole_run: bool,
    /// Name of the machine.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Names of the GPUs.
    pub gpus: Vec<String>,
    /// The evidence that the GPUs were simulated. `null` does not claim that they were real.
    pub simulated: Option<String>,
    /// Whether the recorder finished, and all of the trace can be read.
    pub complete: bool,
    /// Tables with rows that cannot be read.
    pub damaged: Vec<String>,
    /// Dropped events; `null` if unknown.
    pub losses: Option<u64>,
    /// Length of the recording, ns; `null` if its end is unknown.
    pub wall_ns: Option<u64>,
}

/// A recording to compare.
#[derive(Debug)]
pub struct Recording<'a> {
    /// What was recorded.
    pub about: About,
    /// Its counts.
    pub report: &'a Report,
    /// Its rows.
    pub answers: &'a Answers,
    /// Whether the recorder finished.
    pub finished: bool,
    /// What was watched.
    pub watched: Capabilities,
    /// The libraries with probes on their functions: `hip`, `hsa`, `opencl`.
    pub layers: BTreeSet<String>,
    /// The ids of the GPUs, in their order.
    pub gpus: Vec<u32>,
    /// The tables with rows that cannot be read.
    pub unread: &'a BTreeSet<tables::Table>,
}

/// A value of a figure in one recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A number.
    Known(u64),
    /// There is nothing that could have the figure.
    Absent,
    /// Nobody knows, for this reason.
    Unknown(Cow<'static, str>),
}

/// A row. Rows of two recordings with the same key are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The table.
    pub(super) table: Table,
    /// The library of an API function or a layer, or `ioctl`; empty elsewhere.
    pub(super) group: String,
    /// The name.
    pub(super) name: String,
}

/// What is not known of a table, of one of its figures, or of one of its rows.
#[derive(Debug)]
struct Blind {
    table: Table,
    figure: Option<&'static str>,
    name: Option<String>,
    reason: Cow<'static, str>,
}

/// The figures of a recording.
#[derive(Debug, Default)]
pub struct Run {
    about: About,
    rows: BTreeMap<Key, BTreeMap<&'static str, Value>>,
    blind: Vec<Blind>,
    unsound: BTreeMap<Domain, String>,
    layers: BTreeSet<String>,
    reserves: bool,
    /// Functions whose calls were counted only.
    counted: BTreeSet<String>,
}

impl Run {
    /// Returns the figures of a recording.
    #[must_use]
    pub fn of(recording: Recording<'_>) -> Self {
        let mut run = Self {
            unsound: unsound(recording.report, recording.finished),
            reserves: recording.watched.reserves,
            layers: recording.layers.clone(),
            ..Self::default()
        };
        run.add_rows(&recording);
        run.about = recording.about;
        run
    }

    /// Returns what was recorded.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.keys()
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// Returns the value of a figure. A row that the recording does not have is counted 0 times, unless nobody looked.
    pub(super) fn value(&self, key: &Key, figure: &Figure) -> Value {
        let is_of_calls = matches!(key.table, Table::Api | Table::Layer) && key.group != "ioctl";
        if is_of_calls && !self.layers.contains(&key.group) {
            let reason = format!(
                "calls of {} were not recorded, or the program did not load it",
                key.group
            );
            return Value::Unknown(reason.into());
        }
        let blind = self.blind.iter().find(|blind| blind.is_of(key, figure));
        if let Some(blind) = blind {
            return Value::Unknown(blind.reason.clone());
        }
        let known = self.rows.get(key).and_then(|row| row.get(figure.name));
        known
            .cloned()
            .unwrap_or(if figure.zero { Value::Known(0) } else { Value::Absent })
    }

    /// Returns why a figure may miss a part; `None` if it does not.
    pub(super) fn unsound(&self, figure: &Figure) -> Option<&str> {
        let mut reasons = figure.domains.iter().filter_map(|domain| self.unsound.get(domain));
        reasons.next().map(String::as_str)
    }

    /// Returns how the times of a figure were measured. Times that were measured in different ways are not compared.
    pub(super) fn basis(&self, key: &Key, figure: &Figure) -> String {
        let probed = match key.table {
            Table::Api | Table::Layer => key.group != "ioctl",
            _ => figure.name.starts_with("launch."),
        };
        if !probed || figure.kind.is_exact() {
            return String::new();
        }
        let layers: Vec<&str> = self.layers.iter().map(String::as_str).collect();
        let detail = if self.reserves { ", --detail full" } else { "" };
        let counted = if key.table == Table::Api && self.counted.contains(&key.name) {
            ", counted only"
        } else {
            ""
        };
        format!("probes on {}{detail}{counted}", layers.join(" and "))
    }

    fn blind(&mut self, table: Table, figure: Option<&'static str>, reason: impl Into<Cow<'static, str>>) {
        self.blind.push(Blind {
            table,
            figure,
            name: None,
            reason: reason.into(),
        });
    }
}

impl Blind {
    fn is_of(&self, key: &Key, figure: &Figure) -> bool {
        self.table == key.table
            && self.figure.is_none_or(|name| name == figure.name)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
    }
}

/// Returns what lost events, or a missing end, can make wrong, and why.
fn unsound(report: &Report, finished: bool) -> BTreeMap<Domain, String> {
    let mut unsound = BTreeMap::new();
    let mut add = |domains: &[Domain], reason: &str| {
        for &domain in domains {
            unsound.entry(domain).or_insert_with(|| reason.to_owned());
        }
    };
    if !finished {
        add(Domain::all(), "its recorder did not finish");
    }
    if report.losses.total.is_none() {
        add(Domain::all(), "its losses cannot be read");
    }
    for (source, count) in report.losses.by_source.iter().filter(|(_, count)| **count > 0) {
        add(Domain::hidden_by(source), &format!("it lost {count} events ({source})"));
    }
    unsound
}
