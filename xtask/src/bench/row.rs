//! Figures with their targets, as a table and as JSON.

use anyhow::Result;
use serde::Serialize;

use super::Place;

/// A figure: how to measure it, and its target.
pub struct Benchmark {
    /// The name of the figure. It is stable, because it is in the JSON.
    pub name: &'static str,
    /// The unit; empty for a ratio.
    pub unit: &'static str,
    /// The target.
    pub limit: Limit,
    /// Measures the figure.
    pub measure: fn(&Place<'_>) -> Result<f64>,
}

/// The target of a figure.
#[derive(Clone, Copy)]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// A measured figure.
#[derive(Serialize)]
pub struct Row {
    name: &'static str,
    value: f64,
    target: f64,
    unit: &'static str,
    /// Whether the figure meets its target.
    pub ok: bool,
    #[serde(skip)]
    limit: Limit,
}

impl Benchmark {
    /// Measures the figure and returns its row.
    pub fn row(&self, place: &Place<'_>) -> Result<Row> {
        (self.measure)(place).map(|value| self.of(value))
    }

    fn of(&self, value: f64) -> Row {
        let (target, ok) = match self.limit {
            Limit::AtMost(target) => (target, value <= target),
            Limit::AtLeast(target) => (target, value >= target),
        };
        Row {
            name: self.name,
            value,
            target,
            unit: self.unit,
            ok,
            limit: self.limit,
        }
    }
}

/// Formats the rows as `{"rows":[...]}`.
pub fn json(rows: &[Row]) -> Result<String> {
    #[derive(Serialize)]
    struct All<'a> {
        rows: &'a [Row],
    }
    Ok(serde_json::to_string(&All { rows })?)
}

/// Formats the rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let head = "| figure | value | target | met |\n|---|---|---|---|\n".to_owned();
    rows.iter().fold(head, |text, row| text + &row.line())
}

impl Row {
    /// Formats the row as a line of the table.
    pub fn line(&self) -> String {
        let bound = match self.limit {
            Limit::AtMost(_) => "at most",
            Limit::AtLeast(_) => "at least",
        };
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        let (value, target) = (digits(self.value), digits(self.target));
        let met = if self.ok { "yes" } else { "NO" };
        format!("| {} | {value}{unit} | {bound} {target}{unit} | {met} |\n", self.name)
    }
}

/// Formats a value with three significant digits.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(limit: Limit, unit: &'static str) -> Benchmark {
        Benchmark {
            name: "name",
            unit,
            limit,
            measure: |_| Ok(0.0),
        }
    }

    #[test]
    fn a_target_is_met_from_its_own_side() {
        let (most, least) = (benchmark(Limit::AtMost(1.3), ""), benchmark(Limit::AtLeast(1.3), ""));
        for (value, under, over) in [(1.0, true, false), (1.3, true, true), (2.0, false, true)] {
            assert_eq!((most.of(value).ok, least.of(value).ok), (under, over), "{value}");
        }
        assert!(!most.of(f64::NAN).ok && !least.of(f64::NAN).ok);
    }

    #[test]
    fn rows_have_one_form_for_people_and_one_for_programs() {
        let rows = [
            benchmark(Limit::AtMost(1.3), "").of(41.789),
            benchmark(Limit::AtLeast(200_000.0), "rows/s").of(250_000.4),
        ];
        let expected = "| figure | value | target | met |\n|---|---|---|---|\n| name | 41.79 | at most 1.30 | NO |\n\
                        | name | 250000 rows/s | at least 200000 rows/s | yes |\n";
        assert_eq!(table(&rows), expected);
        let expected = r#"{"rows":[{"name":"name","value":41.789,"target":1.3,"unit":"","ok":false}]}"#;
        assert_eq!(json(&rows[..1]).unwrap(), expected);
    }
}
