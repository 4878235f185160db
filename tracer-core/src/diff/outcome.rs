//! The result of a comparison, in the form that is written. Names and order are stable, and `null` means unknown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figure::{Kind, Table};
use super::run::About;
use crate::verify::Outcome;

/// Recordings before and after a change, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The recordings before.
    pub before: Vec<About>,
    /// The recordings after.
    pub after: Vec<About>,
    /// How differences were tested.
    pub method: Method,
    /// What a reader must know before the numbers, in sentences.
    pub notes: Vec<String>,
    /// The tables.
    pub tables: Vec<TableDiff>,
    /// The thresholds of the user.
    pub thresholds: Vec<Judged>,
    /// Fail if any threshold is exceeded, else inconclusive if any is, else pass; `null` without thresholds.
    pub outcome: Option<Outcome>,
}

/// How differences were tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Method {
    /// `mann-whitney`: the rank test.
    pub test: String,
    /// Whether p-values are exact; otherwise they are those of the normal distribution.
    pub exact: bool,
    /// Correction of the p-values of a table: `benjamini-hochberg`.
    pub correction: String,
    /// Correction of the p-values of thresholds: `holm`.
    pub threshold_correction: String,
    /// The highest corrected p-value of a significant difference.
    pub alpha: f64,
    /// The lowest p-value that this number of runs can have. If it is above `alpha`, nothing can be significant.
    pub lowest_p: f64,
    /// The least number of runs on each side with which a difference can be significant.
    pub runs_needed: u64,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableDiff {
    /// What its rows are.
    pub table: Table,
    /// Figures whose p-values were corrected together.
    pub tested: u64,
    /// The rows, by group and name.
    pub rows: Vec<RowDiff>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowDiff {
    /// Library of an API function or a layer, or `ioctl`; empty elsewhere.
    pub group: String,
    /// Name.
    pub name: String,
    /// Whether both sides have it.
    pub presence: Presence,
    /// The figures.
    pub figures: Vec<FigureDiff>,
}

/// Which sides have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Presence {
    /// Both.
    Both,
    /// Only recordings after.
    New,
    /// Only recordings before.
    Gone,
    /// One side, and the other side did not look.
    Unknown,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureDiff {
    /// Name.
    pub figure: String,
    /// Meaning of the numbers; times are in ns.
    pub kind: Kind,
    /// Before.
    pub before: Side,
    /// After.
    pub after: Side,
    /// The median after minus the median before; `null` if a side is unknown or has no value.
    pub change: Option<f64>,
    /// The same as a share of the median before; `null` also if that median is 0.
    pub relative: Option<f64>,
    /// p-value of the rank test; `null` if no test was made: nothing varies, or there are too few runs.
    pub p: Option<f64>,
    /// p-value, corrected for the tests of the table.
    pub p_corrected: Option<f64>,
    /// What can be said.
    pub verdict: Verdict,
    /// Why nothing can be said; `null` elsewhere.
    pub why: Option<String>,
}

/// A figure on one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The value in each recording; `null` if unknown, or if nothing has the figure.
    pub values: Vec<Option<u64>>,
    /// The median; `null` unless each recording has a value.
    pub median: Option<f64>,
    /// The least value, in the same way.
    pub min: Option<u64>,
    /// The greatest value.
    pub max: Option<u64>,
}

impl Side {
    /// Returns whether each recording has the same value.
    pub(super) fn is_constant(&self) -> bool {
        self.min.is_some() && self.min == self.max
    }

    /// Returns the values that are known.
    pub(super) fn known(&self) -> Vec<f64> {
        self.values.iter().flatten().map(|&value| value as f64).collect()
    }
}

/// What can be said of a figure.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// A count that every recording before has, and another one that every recording after has: a fact about them.
    Differs,
    /// The values vary, and the runs show that they differ.
    Significant,
    /// The values differ, and the runs do not show that this is not chance.
    Unclear,
    /// The values differ, and there are too few runs to tell that from chance.
    Untested,
    /// A side lost events, or did not finish, so the values can be too low.
    Unsure,
    /// A side does not know.
    Unknown,
    /// A side has nothing that could have the figure.
    Absent,
    /// Every recording has the same value.
    Equal,
}

/// A threshold, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The threshold as the user wrote it.
    pub threshold: String,
    /// Fail: exceeded. Inconclusive: not known.
    pub outcome: Outcome,
    /// Figures that it was compared with.
    pub figures: u64,
    /// The reason for the outcome, in sentences: one for each figure that does not pass.
    pub why: Vec<String>,
}
