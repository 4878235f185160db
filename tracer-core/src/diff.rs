//! Compares recordings before and after a change: kernels, functions, ioctls, queues, paths, layers and copies.
//!
//! [`Run`] has the figures of one recording. [`diff`] compares those of one or several recordings on each side. A difference of counts
//! between two recordings is a fact about them. Times vary from run to run, so only repeated runs can show that they differ: a rank
//! test compares them, with a correction for the number of figures in a table. What a side does not know is `null`, with the reason,
//! and never a difference from 0.

mod compare;
mod correction;
mod figure;
mod outcome;
mod rank;
mod run;
mod threshold;

use std::collections::BTreeSet;

use crate::words::count;
use compare::Runs;

pub use figure::{Figure, Kind, Table};
pub use outcome::{Diff, FigureDiff, Judged, Method, Presence, RowDiff, Side, TableDiff, Verdict};
pub use run::{About, Recording, Run};
pub use threshold::{Threshold, ThresholdError};

/// Compares recordings before and after a change. `alpha` is the highest corrected p-value of a significant difference.
#[must_use]
pub fn diff(before: &[Run], after: &[Run], thresholds: &[Threshold], alpha: f64) -> Diff {
    let runs = Runs { before, after, alpha };
    let about = |runs: &[Run]| runs.iter().map(|run| run.about().clone()).collect::<Vec<_>>();
    let mut diff = Diff {
        before: about(before),
        after: about(after),
        method: Method {
            test: "mann-whitney".to_owned(),
            exact: before.len() + after.len() <= rank::EXACT_MOST,
            correction: "benjamini-hochberg".to_owned(),
            threshold_correction: "holm".to_owned(),
            alpha,
            lowest_p: rank::lowest(before.len(), after.len()),
            runs_needed: rank::runs_needed(alpha) as u64,
        },
        notes: Vec::new(),
        tables: Table::ALL.into_iter().map(|table| runs.table(table)).collect(),
        thresholds: Vec::new(),
        outcome: None,
    };
    diff.notes = notes(&diff, runs.mixes_simulated());
    diff.thresholds = threshold::judge(thresholds, &diff);
    diff.outcome = diff.thresholds.iter().map(|judged| judged.outcome).max();
    diff
}

impl Method {
    /// Returns whether this number of runs can show a difference of values that vary.
    #[must_use]
    pub fn can_test(&self) -> bool {
        self.lowest_p <= self.alpha
    }
}

/// Returns what a reader must know before the numbers.
fn notes(diff: &Diff, mixes_simulated: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let (before, after) = (diff.before.len() as u64, diff.after.len() as u64);
    let method = &diff.method;
    if !method.can_test() {
        notes.push(format!(
            "{} before and {} after cannot show that times differ: with {} on each side they can",
            count(before, "run"),
            count(after, "run"),
            count(method.runs_needed, "run"),
        ));
    }
    let all = || diff.before.iter().chain(&diff.after);
    if mixes_simulated {
        notes.push("some of these GPUs are simulated, so times are not compared".to_owned());
    }
    if all().any(|about| !about.whole_run) {
        notes.push("a recording has only a part of a program's life, so counts depend on its length".to_owned());
    }
    let mut unlike = |what: &str, of: fn(&About) -> String| {
        let names = |side: &[About]| side.iter().map(of).collect::<BTreeSet<String>>();
        let (before, after) = (names(&diff.before), names(&diff.after));
        if before != after {
            let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
            notes.push(format!("{what} differ: {} before, {} after", list(before), list(after)));
        }
    };
    unlike("machines", |about| about.host.clone());
    unlike("kernels of Linux", |about| about.kernel.clone());
    unlike("GPUs", |about| about.gpus.join(" and "));
    notes
}

#[cfg(test)]
mod tests;
