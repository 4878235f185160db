//! Series that end: a queue that is gone, a number that is not known any more.
//!
//! A collector keeps the last value of a series that is missing in a later message, Prometheus for five minutes. A point with the
//! flag `NO_RECORDED_VALUE` ends the series at once, as a series ends that is missing in `/metrics`.

use std::collections::BTreeSet;

use tracer_core::metrics::{Family, Value};

/// The labels of a series, in the order of their definition.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Series of counters and gauges. The series of a histogram never end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series(BTreeSet<(&'static str, Labels)>);

impl Series {
    /// Returns the series of these metrics.
    #[must_use]
    pub fn in_families(families: &[Family]) -> Self {
        let of = |family: &Family| {
            let numbers = family.samples.iter();
            let numbers = numbers.filter(|sample| matches!(sample.value, Value::Number(_)));
            let name = family.definition.name;
            let labels: Vec<_> = numbers.map(|sample| (name, sample.labels.clone())).collect();
            labels
        };
        Self(families.iter().flat_map(of).collect())
    }

    /// Returns the series that are not in `others`.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        Self(self.0.difference(&others.0).cloned().collect())
    }

    /// Adds the series of `others`.
    pub(crate) fn add(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }

    /// Returns the labels of the series of a metric.
    pub(crate) fn of(&self, name: &str) -> impl Iterator<Item = &Labels> {
        let of_name = self.0.iter().filter(move |(of, _)| *of == name);
        of_name.map(|(_, labels)| labels)
    }
}
