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
                Kind::Info => MetricType::Info,
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
    if kind == Kind::Info {
        return metric.encode_info(&sample.labels);
    }
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
                .map(|&(end, n)| (end.map_or(f64::MAX, seconds), n))
                .collect();
            metric.encode_histogram::<NoLabelSet>(seconds(*sum_ns), *count, &buckets, None)
        }
    }
}
