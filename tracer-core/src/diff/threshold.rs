//! Thresholds: by how much a figure may change.

use std::str::FromStr;

use super::figure::{Figure, Kind, Table};
use super::outcome::{Diff, FigureDiff, Judged, RowDiff, Verdict};
use super::{correction, rank};
use crate::verify::Outcome;

/// A limit to the change of a figure: `dispatches>+0`, `launch.p50>+10%`, `kernel:saxpy:launch.p99>+2us`, `kernel:*:doorbell<-0`.
#[derive(Clone, Debug)]
pub struct Threshold {
    text: String,
    table: Table,
    /// `None`: every row.
    row: Option<String>,
    figure: &'static Figure,
    is_upper: bool,
    limit: Limit,
}

/// By how much the median may change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// By a share of the median before.
    Share(f64),
    /// By an amount.
    Amount(f64),
}

/// A mistake in a threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// It has no limit.
    #[error("it has no limit; write FIGURE>+LIMIT or FIGURE<-LIMIT, such as dispatches>+0 or launch.p50>+10%")]
    NoLimit,
    /// The limit is no number.
    #[error("{0} is not a limit of this figure; write {1}")]
    Limit(String, &'static str),
    /// There is no such table.
    #[error("there is no table {0}; use one of {1}")]
    Table(String, String),
    /// The table has no such figure.
    #[error("table {table} has no figure {name}; it has {figures}")]
    Figure {
        /// The table.
        table: &'static str,
        /// The name.
        name: String,
        /// The figures that there are.
        figures: String,
    },
    /// A row without a figure, or the other way round.
    #[error("{0} is not a figure; write the name of a total, or TABLE:ROW:FIGURE")]
    Place(String),
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        // Names of kernels have such characters, too. A limit has none.
        let at = text.rfind(['>', '<']).ok_or(ThresholdError::NoLimit)?;
        let (place, limit) = (&text[..at], &text[at + 1..]);
        let is_upper = text[at..].starts_with('>');
        let (table, row, name) = match (place.split_once(':'), place.rsplit_once(':')) {
            (Some((table, _)), Some((front, name))) if front.len() > table.len() => {
                (table, Some(&front[table.len() + 1..]), name)
            }
            (None, None) => ("total", Some("total"), place),
            _ => return Err(ThresholdError::Place(place.to_owned())),
        };
        let names = |names: Vec<&str>| names.join(", ");
        let table = Table::from_str(table).map_err(|_| {
            let all = Table::ALL.map(Into::into).to_vec();
            ThresholdError::Table(table.to_owned(), names(all))
        })?;
        let figure = table.figure(name).ok_or_else(|| ThresholdError::Figure {
            table: table.into(),
            name: name.to_owned(),
            figures: names(table.figures().iter().map(|figure| figure.name).collect()),
        })?;
        Ok(Self {
            text: text.to_owned(),
            table,
            row: row.filter(|&row| row != "*").map(str::to_owned),
            figure,
            is_upper,
            limit: parse_limit(limit, is_upper, figure.kind)?,
        })
    }
}

/// Parses `+10%`, `-3`, `+2us`. The sign follows from the direction, and may be left out.
fn parse_limit(text: &str, is_upper: bool, kind: Kind) -> Result<Limit, ThresholdError> {
    let (form, units): (_, &[(&str, f64)]) = match kind {
        Kind::Count | Kind::Level => ("+10% or +3", &[("", 1.0)]),
        Kind::Time => ("+10% or +2us", &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]),
        Kind::Bytes => (
            "+10% or +4KiB",
            &[
                ("B", 1.0),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
            ],
        ),
    };
    let wrong = || ThresholdError::Limit(text.to_owned(), form);
    let unsigned = text
        .trim()
        .strip_prefix(if is_upper { '+' } else { '-' })
        .unwrap_or(text.trim());
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(end);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    match unit.trim() {
        "%" => Ok(Limit::Share(number / 100.0)),
        unit => {
            // No change at all needs no unit.
            let size = units.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
            let size = size.or((number == 0.0 && unit.is_empty()).then_some(1.0));
            Ok(Limit::Amount(number * size.ok_or_else(wrong)?))
        }
    }
}

/// What a figure says of a threshold.
enum Check {
    Decided(Outcome),
    /// Its values vary: whether the median exceeds the limit, and the p-value that it does by chance.
    Tested(bool, f64),
}

/// A figure, what it says, and why.
struct Checked {
    threshold: usize,
    check: Check,
    why: String,
}

/// Judges all thresholds. Figures whose values vary are tested together.
pub(super) fn judge(thresholds: &[Threshold], diff: &Diff) -> Vec<Judged> {
    let (runs, alpha) = ((diff.before.len(), diff.after.len()), diff.method.alpha);
    let mut checked: Vec<Checked> = Vec::new();
    for (number, threshold) in thresholds.iter().enumerate() {
        let figures = threshold.figures(diff);
        let found = figures.into_iter().filter_map(|(row, figure)| {
            let (check, why) = threshold.check(figure, runs, alpha)?;
            let why = format!("{}: {why}", threshold.called(row));
            Some(Checked {
                threshold: number,
                check,
                why,
            })
        });
        let before = checked.len();
        checked.extend(found);
        if checked.len() == before {
            checked.push(Checked {
                threshold: number,
                check: Check::Decided(Outcome::Inconclusive),
                why: threshold.nothing(),
            });
        }
    }
    // Those within their limits, too: which ones they are depends on the values.
    let tested = |checked: &Checked| match checked.check {
        Check::Tested(_, p) => Some(p),
        Check::Decided(_) => None,
    };
    let p: Vec<f64> = checked.iter().filter_map(tested).collect();
    let mut corrected = correction::holm(&p).into_iter();
    let mut judged: Vec<Judged> = thresholds.iter().map(Threshold::passed).collect();
    for Checked {
        threshold,
        check,
        mut why,
    } in checked
    {
        let outcome = match check {
            Check::Decided(outcome) => outcome,
            Check::Tested(exceeds, _) => {
                let p = corrected.next().unwrap_or(1.0);
                let (outcome, more) = match exceeds {
                    false => (Outcome::Pass, ""),
                    true if p <= alpha => (Outcome::Fail, ""),
                    true => (Outcome::Inconclusive, ": these runs do not show that it is not chance"),
                };
                why = format!("{why}, p {p:.4}{more}");
                outcome
            }
        };
        let of = &mut judged[threshold];
        of.figures += 1;
        of.outcome = of.outcome.max(outcome);
        if outcome != Outcome::Pass {
            of.why.push(why);
        }
    }
    judged
}

impl Threshold {
    fn figures<'a>(&self, diff: &'a Diff) -> Vec<(&'a RowDiff, &'a FigureDiff)> {
        let tables = diff.tables.iter().filter(|table| table.table == self.table);
        let rows = tables.flat_map(|table| &table.rows);
        let rows = rows.filter(|row| self.row.as_ref().is_none_or(|name| *name == row.name));
        let figure = |row: &'a RowDiff| row.figures.iter().find(|figure| figure.figure == self.figure.name);
        rows.filter_map(|row| Some((row, figure(row)?))).collect()
    }

    fn passed(&self) -> Judged {
        Judged {
            threshold: self.text.clone(),
            outcome: Outcome::Pass,
            figures: 0,
            why: Vec::new(),
        }
    }

    fn called(&self, row: &RowDiff) -> String {
        match self.table {
            Table::Total => self.figure.name.to_owned(),
            table => format!("{} of {} {}", self.figure.name, Into::<&str>::into(table), row.name),
        }
    }

    fn nothing(&self) -> String {
        let table: &str = self.table.into();
        match &self.row {
            Some(row) => format!("no recording has a row {row} with a value in table {table}"),
            None => format!("no row of table {table} has the figure on both sides"),
        }
    }

    /// Returns what a figure says of the threshold, and why; `None` if it does not concern the threshold.
    fn check(&self, figure: &FigureDiff, (before, after): (usize, usize), alpha: f64) -> Option<(Check, String)> {
        let inconclusive = |why: String| Some((Check::Decided(Outcome::Inconclusive), why));
        let why = || figure.why.clone().unwrap_or_default();
        let (from, to) = match (figure.verdict, figure.before.median.zip(figure.after.median)) {
            (Verdict::Unknown, _) => return inconclusive(format!("unknown: {}", why())),
            (Verdict::Unsure, _) => return inconclusive(format!("unsure: {}", why())),
            // A row on one side only has no times to compare; its counts say that it is new, or gone.
            (_, None) if self.row.is_none() => return None,
            (_, None) => return inconclusive("a side has nothing with this figure".to_owned()),
            (_, Some(medians)) => medians,
        };
        let limit = |value: f64| match self.limit {
            Limit::Share(share) if self.is_upper => value * (1.0 + share),
            Limit::Share(share) => value * (1.0 - share),
            Limit::Amount(amount) if self.is_upper => value + amount,
            Limit::Amount(amount) => value - amount,
        };
        let exceeds = if self.is_upper {
            to > limit(from)
        } else {
            to < limit(from)
        };
        let text = |value| self.figure.kind.text(value);
        let share = figure
            .relative
            .map_or_else(String::new, |share| format!(" ({:+.1} %)", share * 100.0));
        let change = format!("{} before, {} after{share}", text(from), text(to));
        let is_fact = self.figure.kind.is_exact() && figure.before.is_constant() && figure.after.is_constant();
        if is_fact {
            let outcome = if exceeds { Outcome::Fail } else { Outcome::Pass };
            return Some((Check::Decided(outcome), change));
        }
        if rank::lowest_one_sided(before, after) > alpha {
            let runs = format!("{before} and {after} runs are too few to tell a change from chance");
            return inconclusive(format!("{change}; {runs}"));
        }
        // The test is against the limit: are the values beyond what the limit allows of those before?
        let allowed: Vec<f64> = figure.before.known().into_iter().map(limit).collect();
        let found = figure.after.known();
        let p = if self.is_upper {
            rank::greater(&allowed, &found)
        } else {
            rank::greater(&found, &allowed)
        };
        Some((Check::Tested(exceeds, p), change))
    }
}
