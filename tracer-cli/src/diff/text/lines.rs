//! The lines of a table: which figures are written, in which order, and how.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracer_core::{
    diff::{FigureDiff, Presence, RowDiff, Side, TableDiff, Verdict},
    words::{Named, count},
};

/// A figure of a row.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub name: &'a str,
    pub presence: Presence,
    pub figure: &'a FigureDiff,
}

/// The place of a row: the verdict, then whether only one side has it, then the change of counts and of times.
type Order = (Verdict, bool, Reverse<u64>, Reverse<u64>);

/// Returns the rows that differ with their lines, what matters most first. `equal`: also those that do not differ. `every`: also
/// further figures whose values only vary.
pub fn of(table: &TableDiff, equal: bool, every: bool) -> Vec<Vec<Line<'_>>> {
    let mut rows: Vec<(Order, Vec<Line<'_>>)> = Vec::new();
    for row in &table.rows {
        let lines = of_row(row, equal, every);
        if !lines.is_empty() {
            rows.push((order(row), lines));
        }
    }
    rows.sort_by_key(|(order, _)| *order);
    rows.into_iter().map(|(_, lines)| lines).collect()
}

fn of_row(row: &RowDiff, equal: bool, every: bool) -> Vec<Line<'_>> {
    // In the table of totals, every figure is a row.
    let all_vary = every || row.name == "total";
    let mut has_varying = false;
    let mut is_written = |figure: &&FigureDiff| match figure.verdict {
        Verdict::Differs | Verdict::Significant => !is_same_as_first(row, figure),
        Verdict::Unclear | Verdict::Untested => all_vary || equal || !std::mem::replace(&mut has_varying, true),
        Verdict::Unsure => equal || figure.change != Some(0.0),
        Verdict::Unknown | Verdict::Absent | Verdict::Equal => equal,
    };
    let figures = row.figures.iter().filter(|figure| is_written(figure));
    figures
        .map(|figure| Line {
            name: &row.name,
            presence: row.presence,
            figure,
        })
        .collect()
}

/// Returns whether a count repeats the first one of its row: of a kernel, the count of the only path.
fn is_same_as_first(row: &RowDiff, figure: &FigureDiff) -> bool {
    row.figures.first().is_some_and(|first| {
        !std::ptr::eq(first, figure) && (&first.before, &first.after) == (&figure.before, &figure.after)
    })
}

fn order(row: &RowDiff) -> Order {
    let best = row.figures.iter().map(|figure| figure.verdict).min();
    let change = |exact: bool| {
        let figures = row.figures.iter().filter(|figure| figure.kind.is_exact() == exact);
        let changes = figures.filter_map(|figure| figure.change.map(|change| change.abs() as u64));
        Reverse(changes.max().unwrap_or(0))
    };
    let is_both = row.presence == Presence::Both;
    (best.unwrap_or(Verdict::Equal), is_both, change(true), change(false))
}

/// Returns why figures are unknown or unsure: a sentence for each reason, with the figures. `every`: also figures that neither side
/// knows.
pub fn unknown(table: &TableDiff, every: bool) -> Vec<String> {
    let mut reasons: BTreeMap<&str, (Vec<&str>, u64)> = BTreeMap::new();
    for row in &table.rows {
        let mut is_named: Vec<&str> = Vec::new();
        for figure in &row.figures {
            let is_known = figure.before.median.is_some() || figure.after.median.is_some();
            let Some(why) = figure.why.as_ref().filter(|_| every || is_known) else {
                continue;
            };
            let (figures, rows) = reasons.entry(why).or_default();
            if !figures.contains(&figure.figure.as_str()) {
                figures.push(&figure.figure);
            }
            if !is_named.contains(&why.as_str()) {
                is_named.push(why);
                *rows += 1;
            }
        }
    }
    let is_total = table.rows.first().is_some_and(|row| row.name == "total");
    let sentence = |(why, (figures, rows)): (&str, (Vec<&str>, u64))| {
        let all = table.rows.iter().map(|row| row.figures.len()).max().unwrap_or(0);
        let figures = if figures.len() == all {
            "all figures".to_owned()
        } else {
            figures.join(", ")
        };
        let of = if is_total {
            String::new()
        } else {
            format!(" of {}", count(rows, "row"))
        };
        format!("Unknown: {figures}{of}; {why}.")
    };
    reasons.into_iter().map(sentence).collect()
}

impl Line<'_> {
    pub fn before(&self) -> String {
        self.median(&self.figure.before)
    }

    pub fn after(&self) -> String {
        self.median(&self.figure.after)
    }

    fn median(&self, side: &Side) -> String {
        let missing = if self.figure.verdict == Verdict::Unknown {
            "?"
        } else {
            "-"
        };
        side.median
            .map_or_else(|| missing.to_owned(), |value| self.figure.kind.text(value))
    }

    /// Returns the change as a share, or as an amount where there was nothing before.
    pub fn change(&self) -> String {
        match (self.figure.change, self.figure.relative) {
            (None, _) => "-".to_owned(),
            (Some(0.0), _) => "0".to_owned(),
            (_, Some(share)) if share.abs() < 0.0005 => if share < 0.0 { ">-0.1 %" } else { "<+0.1 %" }.to_owned(),
            (_, Some(share)) if share >= 10.0 => format!("x{:.1}", share + 1.0),
            (_, Some(share)) => format!("{:+.1} %", share * 100.0),
            (Some(change), None) => format!("+{}", self.figure.kind.text(change)),
        }
    }

    pub fn verdict(&self) -> &'static str {
        match (self.presence, self.figure.verdict) {
            (presence @ (Presence::New | Presence::Gone), Verdict::Differs | Verdict::Significant) => presence.name(),
            (_, Verdict::Untested) => "-",
            (_, verdict) => verdict.name(),
        }
    }

    pub fn p(&self) -> String {
        match self.figure.p_corrected {
            None => "-".to_owned(),
            Some(p) if p < 0.0001 => "<0.0001".to_owned(),
            Some(p) => format!("{p:.4}"),
        }
    }

    pub fn range_before(&self) -> String {
        self.range(&self.figure.before)
    }

    pub fn range_after(&self) -> String {
        self.range(&self.figure.after)
    }

    fn range(&self, side: &Side) -> String {
        let text = |value: u64| self.figure.kind.text(value as f64);
        match (side.min, side.max) {
            (Some(min), Some(max)) if min == max => text(min),
            (Some(min), Some(max)) => format!("{} to {}", text(min), text(max)),
            _ => "-".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracer_core::diff::{Kind, Table};

    use super::*;

    fn figure(name: &str, kind: Kind, verdict: Verdict, values: (Option<u64>, Option<u64>)) -> FigureDiff {
        let side = |value: Option<u64>| Side {
            values: vec![value],
            median: value.map(|value| value as f64),
            min: value,
            max: value,
        };
        let (before, after) = (side(values.0), side(values.1));
        let change = before.median.zip(after.median).map(|(before, after)| after - before);
        let relative = change.zip(before.median.filter(|&before| before > 0.0));
        FigureDiff {
            figure: name.to_owned(),
            kind,
            before,
            after,
            change,
            relative: relative.map(|(change, before)| change / before),
            p: None,
            p_corrected: None,
            verdict,
            why: (verdict == Verdict::Unknown).then(|| "after: nobody looked".to_owned()),
        }
    }

    fn row(name: &str, presence: Presence, figures: Vec<FigureDiff>) -> RowDiff {
        RowDiff {
            group: String::new(),
            name: name.to_owned(),
            presence,
            figures,
        }
    }

    fn table() -> TableDiff {
        let count = |name, verdict, values| figure(name, Kind::Count, verdict, values);
        let time = |name, values| figure(name, Kind::Time, Verdict::Untested, values);
        let rows = vec![
            row(
                "same",
                Presence::Both,
                vec![count("dispatches", Verdict::Equal, (Some(4), Some(4)))],
            ),
            row(
                "slow",
                Presence::Both,
                vec![
                    count("dispatches", Verdict::Equal, (Some(4), Some(4))),
                    time("launch.p50", (Some(1_000), Some(9_000))),
                    time("launch.p99", (Some(2_000), Some(90_000))),
                ],
            ),
            row(
                "more",
                Presence::Both,
                vec![
                    count("dispatches", Verdict::Differs, (Some(20), Some(25))),
                    count("doorbell", Verdict::Differs, (Some(20), Some(25))),
                    time("launch.p50", (Some(1_000), Some(1_000))),
                ],
            ),
            row(
                "new",
                Presence::New,
                vec![
                    count("dispatches", Verdict::Differs, (Some(0), Some(2))),
                    figure("launch.p50", Kind::Time, Verdict::Absent, (None, Some(5))),
                ],
            ),
            row(
                "blind",
                Presence::Unknown,
                vec![
                    count("dispatches", Verdict::Unknown, (Some(3), None)),
                    count("ring", Verdict::Unknown, (None, None)),
                ],
            ),
        ];
        TableDiff {
            table: Table::Kernel,
            tested: 0,
            rows,
        }
    }

    fn written(rows: &[Vec<Line<'_>>]) -> Vec<String> {
        let cells = |line: &Line<'_>| {
            let (before, after) = (line.before(), line.after());
            format!(
                "{} {} {before} {after} {} {}",
                line.name,
                line.figure.figure,
                line.change(),
                line.verdict()
            )
        };
        rows.iter().flatten().map(cells).collect()
    }

    /// What only one side has is first, a path that repeats the dispatches is left out, and of times without a verdict the first one
    /// stands for all.
    #[test]
    fn what_differs_is_written_and_what_matters_most_comes_first() {
        let table = table();
        let expected = [
            "new dispatches 0 2 +2 new",
            "more dispatches 20 25 +25.0 % differs",
            "more launch.p50 1.0 us 1.0 us 0 -",
            "slow launch.p50 1.0 us 9.0 us +800.0 % -",
        ];
        assert_eq!(written(&of(&table, false, false)), expected);
        let every = written(&of(&table, false, true));
        assert_eq!(
            (every.len(), every[4].as_str()),
            (5, "slow launch.p99 2.0 us 90.0 us x45.0 -")
        );
        let all = written(&of(&table, true, false));
        assert!(all.contains(&"same dispatches 4 4 0 equal".to_owned()), "{all:?}");
        assert!(all.contains(&"blind dispatches 3 ? - unknown".to_owned()), "{all:?}");
        assert!(all.contains(&"new launch.p50 - 5 ns - absent".to_owned()), "{all:?}");
    }

    #[test]
    fn what_one_side_knows_has_its_reason() {
        let table = table();
        assert_eq!(
            unknown(&table, false),
            ["Unknown: dispatches of 1 row; after: nobody looked."]
        );
        assert_eq!(
            unknown(&table, true),
            ["Unknown: dispatches, ring of 1 row; after: nobody looked."]
        );
    }

    #[test]
    fn small_and_great_changes_are_not_rounded_away() {
        let change = |before, after| {
            let figure = figure("f", Kind::Count, Verdict::Differs, (Some(before), Some(after)));
            let line = Line {
                name: "n",
                presence: Presence::Both,
                figure: &figure,
            };
            line.change()
        };
        assert_eq!([change(10_000, 10_001), change(10_001, 10_000)], ["<+0.1 %", ">-0.1 %"]);
        assert_eq!(
            [change(10, 109), change(10, 110), change(4, 0)],
            ["+990.0 %", "x11.0", "-100.0 %"]
        );
    }
}
