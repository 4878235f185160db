//! Compares recordings, figure by figure.

use std::collections::BTreeSet;

use super::figure::{Figure, Kind, Table};
use super::outcome::{FigureDiff, Presence, RowDiff, Side, TableDiff, Verdict};
use super::run::{Key, Run, Value};
use super::{correction, rank};

/// Recordings before and after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'a> {
    /// Before.
    pub(super) before: &'a [Run],
    /// After.
    pub(super) after: &'a [Run],
    /// The highest corrected p-value of a significant difference.
    pub(super) alpha: f64,
}

impl<'a> Runs<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Run> {
        self.before.iter().chain(self.after)
    }

    /// Returns whether these runs can show any difference.
    fn can_test(&self) -> bool {
        rank::lowest(self.before.len(), self.after.len()) <= self.alpha
    }

    /// Returns whether some ran on a simulated GPU, and others not.
    pub(super) fn mixes_simulated(&self) -> bool {
        let simulated = self.all().filter(|run| run.about().simulated.is_some()).count();
        simulated > 0 && simulated < self.before.len() + self.after.len()
    }

    /// Compares a table.
    pub(super) fn table(&self, table: Table) -> TableDiff {
        let keys: BTreeSet<&Key> = self
            .all()
            .flat_map(Run::keys)
            .filter(|key| key.table == table)
            .collect();
        let mut rows: Vec<RowDiff> = keys.into_iter().map(|key| self.row(key)).collect();
        let figures = rows.iter_mut().flat_map(|row| &mut row.figures);
        let mut tested: Vec<&mut FigureDiff> = figures.filter(|figure| figure.p.is_some()).collect();
        let p: Vec<f64> = tested.iter().filter_map(|figure| figure.p).collect();
        let corrected = correction::benjamini_hochberg(&p);
        for (figure, p) in tested.iter_mut().zip(corrected) {
            figure.p_corrected = Some(p);
            if p <= self.alpha && figure.verdict == Verdict::Unclear {
                figure.verdict = Verdict::Significant;
            }
        }
        TableDiff {
            table,
            tested: p.len() as u64,
            rows,
        }
    }

    fn row(&self, key: &Key) -> RowDiff {
        let has = |runs: &[Run]| runs.iter().any(|run| run.has(key));
        let figures: Vec<FigureDiff> = key
            .table
            .figures()
            .iter()
            .map(|figure| self.figure(key, figure))
            .collect();
        let unknown = figures.first().is_some_and(|first| first.verdict == Verdict::Unknown);
        let presence = match (has(self.before), has(self.after)) {
            (true, true) => Presence::Both,
            _ if unknown => Presence::Unknown,
            (false, _) => Presence::New,
            (true, false) => Presence::Gone,
        };
        RowDiff {
            group: key.group.clone(),
            name: key.name.clone(),
            presence,
            figures,
        }
    }

    /// Compares a figure. The correction for other figures, and so its significance, come later.
    fn figure(&self, key: &Key, figure: &Figure) -> FigureDiff {
        let values = |runs: &[Run]| runs.iter().map(|run| run.value(key, figure)).collect::<Vec<_>>();
        let (before, after) = (values(self.before), values(self.after));
        let unknown = reason("before", &before)
            .or_else(|| reason("after", &after))
            .or_else(|| self.incomparable(key, figure));
        let (before, after) = (side(&before), side(&after));
        let change = before.median.zip(after.median).map(|(before, after)| after - before);
        let mut diff = FigureDiff {
            figure: figure.name.to_owned(),
            kind: figure.kind,
            change: change.filter(|_| unknown.is_none()),
            relative: None,
            p: None,
            p_corrected: None,
            verdict: Verdict::Unclear,
            why: None,
            before,
            after,
        };
        diff.relative = diff.change.and_then(|change| relative(change, diff.before.median));
        let constant = diff.before.is_constant() && diff.after.is_constant();
        (diff.verdict, diff.why) = match (unknown, self.unsound(figure)) {
            (Some(why), _) => (Verdict::Unknown, Some(why)),
            _ if diff.change.is_none() => (Verdict::Absent, None),
            (_, Some(why)) => (Verdict::Unsure, Some(why)),
            _ if constant && diff.change == Some(0.0) => (Verdict::Equal, None),
            _ if constant && figure.kind.is_exact() => (Verdict::Differs, None),
            _ if !self.can_test() => (Verdict::Untested, None),
            _ => (Verdict::Unclear, None),
        };
        // What does not vary is not tested. That does not depend on which side has which value, so it is no choice of results.
        if self.can_test() && matches!(diff.verdict, Verdict::Differs | Verdict::Unclear) {
            diff.p = Some(rank::two_sided(&diff.before.known(), &diff.after.known()));
        }
        diff
    }

    /// Returns why values cannot be compared that are known.
    fn incomparable(&self, key: &Key, figure: &Figure) -> Option<String> {
        let is_time = matches!(figure.kind, Kind::Time | Kind::Level);
        if is_time && self.mixes_simulated() {
            return Some("times of simulated and real GPUs cannot be compared".to_owned());
        }
        let with_value = |run: &&Run| matches!(run.value(key, figure), Value::Known(_)) && run.has(key);
        let bases: BTreeSet<String> = self
            .all()
            .filter(with_value)
            .map(|run| run.basis(key, figure))
            .collect();
        let (first, last) = (bases.first()?, bases.last()?);
        (first != last).then(|| format!("recorded in different ways: {first}; {last}"))
    }

    /// Returns why a figure may miss a part.
    fn unsound(&self, figure: &Figure) -> Option<String> {
        let of = |side: &str, runs: &[Run]| {
            let run = runs.iter().find_map(|run| Some((run, run.unsound(figure)?)));
            run.map(|(run, why)| format!("{side}: {} is not whole: {why}", run.about().trace))
        };
        of("before", self.before).or_else(|| of("after", self.after))
    }
}

/// Returns why a side is unknown; `None` if each recording of it has a value, or nothing that could have one.
fn reason(side: &str, values: &[Value]) -> Option<String> {
    values.iter().find_map(|value| match value {
        Value::Unknown(why) => Some(format!("{side}: {why}")),
        Value::Known(_) | Value::Absent => None,
    })
}

fn side(values: &[Value]) -> Side {
    let values: Vec<Option<u64>> = values
        .iter()
        .map(|value| match value {
            Value::Known(n) => Some(*n),
            Value::Absent | Value::Unknown(_) => None,
        })
        .collect();
    let all: Option<Vec<u64>> = values.iter().copied().collect();
    let all = all.unwrap_or_default();
    Side {
        median: median(&all),
        min: all.iter().copied().min(),
        max: all.iter().copied().max(),
        values,
    }
}

/// Returns the median, the mean of the middle two of an even number; `None` of nothing.
fn median(values: &[u64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = |at: usize| sorted.get(at).map(|&value| value as f64);
    let (low, high) = (middle(sorted.len().checked_sub(1)? / 2)?, middle(sorted.len() / 2)?);
    Some(f64::midpoint(low, high))
}

fn relative(change: f64, before: Option<f64>) -> Option<f64> {
    before.filter(|&before| before != 0.0).map(|before| change / before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(7.0));
        assert_eq!(median(&[9, 1, 4]), Some(4.0));
        assert_eq!(median(&[9, 1, 4, 5]), Some(4.5));
    }
}
