//! Metrics as a message of OTLP.

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, DataPointFlags, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
    },
    resource::v1::Resource,
};
use tracer_core::metrics::{CATALOG, Definition, Family, Kind, Sample, Value};

use crate::ended::{Labels, Series};

/// The program that has the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Version of tracer.
    pub version: String,
    /// Name of the machine.
    pub host: String,
    /// Distinguishes this program from every other tracer that sends to the same collector.
    pub instance: String,
}

/// Two times, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When every counter was 0.
    pub start_ns: u64,
    /// When the values were read.
    pub now_ns: u64,
}

/// Returns the message with these metrics. The series in `ended` had a value before, and have none now.
#[must_use]
pub fn request(families: &[Family], ended: &Series, origin: &Origin, times: Times) -> ExportMetricsServiceRequest {
    let metrics = CATALOG.iter().filter_map(|definition| {
        let family = families.iter().find(|family| family.definition == definition);
        let samples = family.map_or(&[][..], |family| &family.samples);
        let ended: Vec<&Labels> = ended.of(definition.name).collect();
        (!samples.is_empty() || !ended.is_empty()).then(|| metric(definition, samples, &ended, times))
    });
    let metrics = metrics.collect();
    let attributes = [
        ("service.name", "tracer"),
        ("service.version", &origin.version),
        ("service.instance.id", &origin.instance),
        ("host.name", &origin.host),
    ];
    let resource = Resource {
        attributes: attributes.map(|(key, value)| attribute(key, value)).into(),
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "tracer".to_owned(),
        version: origin.version.clone(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    }
}

fn metric(definition: &Definition, samples: &[Sample], ended: &[&Labels], times: Times) -> Metric {
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match definition.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(samples, ended, times.start_ns, times.now_ns),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: numbers(samples, ended, 0, times.now_ns),
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: samples.iter().filter_map(|sample| histogram(sample, times)).collect(),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: name(definition),
        description: definition.help.to_owned(),
        unit: unit(definition).to_owned(),
        metadata: Vec::new(),
        data: Some(data),
    }
}

/// Returns the name as `/metrics` shows it. Prometheus adds `_total` to a counter and the unit's name to a metric, each unless it
/// is there. Collectors that add nothing show the same name, too.
fn name(definition: &Definition) -> String {
    match definition.kind {
        Kind::Counter => format!("{}_total", definition.name),
        Kind::Gauge | Kind::Histogram => definition.name.to_owned(),
    }
}

/// Returns the unit by the rules of UCUM: what is counted is an annotation, in the singular. A state of 0 or 1 has no unit:
/// Prometheus would add `_ratio` to the name of a gauge with unit `1`.
fn unit(definition: &Definition) -> &'static str {
    match definition.unit {
        "seconds" => "s",
        "dispatches" => "{dispatch}",
        "stores" => "{store}",
        "submissions" => "{submission}",
        "packets" => "{packet}",
        "jobs" => "{job}",
        "queues" => "{queue}",
        "calls" => "{call}",
        "events" => "{event}",
        _ => "",
    }
}

/// Returns the points of a counter or a gauge. A series that ended has a point without a value.
fn numbers(samples: &[Sample], ended: &[&Labels], start_ns: u64, now_ns: u64) -> Vec<NumberDataPoint> {
    let point = |labels: &Labels, value, flags: DataPointFlags| NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: start_ns,
        time_unix_nano: now_ns,
        exemplars: Vec::new(),
        flags: flags as u32,
        value,
    };
    let living = samples.iter().filter_map(|sample| match sample.value {
        Value::Number(n) => Some(point(&sample.labels, Some(number(n)), DataPointFlags::DoNotUse)),
        Value::Histogram { .. } => None,
    });
    let ended = ended.iter();
    let ended = ended.map(|labels| point(labels, None, DataPointFlags::NoRecordedValueMask));
    living.chain(ended).collect()
}

fn number(n: u64) -> number_data_point::Value {
    i64::try_from(n).map_or_else(
        |_| number_data_point::Value::AsDouble(n as f64),
        number_data_point::Value::AsInt,
    )
}

fn histogram(sample: &Sample, times: Times) -> Option<HistogramDataPoint> {
    let Value::Histogram { sum_ns, count, buckets } = &sample.value else {
        return None;
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    let bounded = || buckets.iter().filter_map(|&(end, own)| Some((end?, own)));
    // What is in no bounded bucket is in the last one, which OTLP demands.
    let inside: u64 = bounded().map(|(_, own)| own).sum();
    let counts = bounded().map(|(_, own)| own).chain([count.saturating_sub(inside)]);
    Some(HistogramDataPoint {
        attributes: attributes(&sample.labels),
        start_time_unix_nano: times.start_ns,
        time_unix_nano: times.now_ns,
        count: *count,
        sum: Some(seconds(*sum_ns)),
        bucket_counts: counts.collect(),
        explicit_bounds: bounded().map(|(end, _)| seconds(end)).collect(),
        exemplars: Vec::new(),
        flags: DataPointFlags::DoNotUse as u32,
        min: None,
        max: None,
    })
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| attribute(key, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_catalogue_is_known() {
        for definition in &CATALOG {
            let has_none = ["", "0 or 1"].contains(&definition.unit);
            assert_eq!(unit(definition).is_empty(), has_none, "{}", definition.name);
        }
    }
}
