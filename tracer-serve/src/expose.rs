//! Metrics in the text format of OpenMetrics.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text::encode},
    metrics::MetricType,
    registry::Registry,
};
use tracer_core::metrics::{Family, Kind, Sample, Value};

/// The content type of the answer.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Formats the metrics as text.
///
/// # Errors
/// Returns an error of formatting; with a `String` there is none.
pub fn text(families: Vec<Family>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut out = String::new();
    encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.definition.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.definition.name, family.definition.help, None, kind)?;
            for sample in &family.samples {
                one(&mut metric, family.definition.kind, sample)?;
            }
        }
        Ok(())
    }
}

fn one(metric: &mut MetricEncoder<'_>, kind: Kind, sample: &Sample) -> Result<(), fmt::Error> {
    if sample.labels.is_empty() {
        return number(metric, kind, &sample.value);
    }
    number(&mut metric.encode_family(&sample.labels)?, kind, &sample.value)
}

fn number(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), fmt::Error> {
    match value {
        Value::Number(n) if kind == Kind::Counter => metric.encode_counter::<NoLabelSet, u64, u64>(n, None),
        Value::Number(n) => metric.encode_gauge(n),
        Value::Histogram { sum_ns, count, buckets } => {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let buckets: Vec<(f64, u64)> = buckets
                .iter()
                .map(|&(end, n)| (end.map_or(f64::INFINITY, seconds), n))
                .collect();
            metric.encode_histogram::<NoLabelSet>(seconds(*sum_ns), *count, &buckets, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use tracer_core::metrics::CATALOG;

    use super::*;

    /// Prometheus computes no quantile without a bucket `+Inf` that counts everything.
    #[test]
    fn the_last_bucket_of_a_histogram_is_unbounded() {
        let definition = CATALOG.iter().find(|metric| metric.kind == Kind::Histogram).unwrap();
        let sample = Sample {
            labels: Vec::new(),
            value: Value::Histogram {
                sum_ns: 7_500_000_000,
                count: 6,
                buckets: vec![(Some(1_000_000), 3), (Some(500_000_000), 2), (None, 1)],
            },
        };
        let samples = vec![sample];
        let text = text(vec![Family { definition, samples }]).unwrap();
        let buckets: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix(definition.name)?.strip_prefix("_bucket"))
            .collect();
        assert_eq!(buckets, ["{le=\"0.001\"} 3", "{le=\"0.5\"} 5", "{le=\"+Inf\"} 6"]);
    }
}
