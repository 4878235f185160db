//! The message: every field of it, as a collector receives it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
        ScopeMetrics, Sum, metric::Data, number_data_point,
    },
    resource::v1::Resource,
};
use prost::Message;
use tracer_core::metrics::{CATALOG, Family, Sample, Value};
use tracer_otlp::{Pusher, Series, Times, request};

use crate::collector::{Collector, ok, origin, target};

/// Returns a family of the catalogue.
fn family<const N: usize>(name: &str, samples: [(&[&str], Value); N]) -> Family {
    let definition = CATALOG.iter().find(|definition| definition.name == name);
    let definition = definition.expect("it is in the catalogue");
    let sample = |(labels, value): (&[&str], Value)| {
        assert_eq!(labels.len(), definition.labels.len(), "{name}");
        let labels = labels.iter().map(|&label| label.to_owned());
        Sample {
            labels: definition.labels.iter().copied().zip(labels).collect(),
            value,
        }
    };
    Family {
        definition,
        samples: samples.map(sample).into(),
    }
}

/// One metric of each kind, and the limits of the numbers.
fn families() -> Vec<Family> {
    vec![
        family(
            "tracer_dispatches",
            [
                (&["42", "1000", "3", "doorbell"], Value::Number(7)),
                (&["42", "1000", "ended", "unseen"], Value::Number(0)),
                (&["unknown", "", "other", "doorbell"], Value::Number(u64::MAX)),
            ],
        ),
        family(
            "tracer_queue_depth_packets",
            [(&["42", "1000", "3"], Value::Number(i64::MAX as u64))],
        ),
        family("tracer_queue_stuck", [(&["42", "1000", "3"], Value::Number(1))]),
        family(
            "tracer_kfd_ioctl_seconds",
            [(
                &["CREATE_QUEUE"],
                Value::Histogram {
                    sum_ns: 7_500_000_000,
                    count: 6,
                    buckets: vec![(Some(100), 3), (Some(500_000_000), 2), (None, 1)],
                },
            )],
        ),
    ]
}

fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> Vec<KeyValue> {
    let attribute = |(key, value): (&str, &str)| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        key_strindex: 0,
    };
    pairs.map(attribute).into()
}

fn point<const N: usize>(
    labels: [(&str, &str); N],
    start_ns: u64,
    now_ns: u64,
    value: number_data_point::Value,
) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: start_ns,
        time_unix_nano: now_ns,
        exemplars: Vec::new(),
        flags: 0,
        value: Some(value),
    }
}

fn metric(name: &str, description: &str, unit: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        description: description.to_owned(),
        unit: unit.to_owned(),
        metadata: Vec::new(),
        data: Some(data),
    }
}

/// The metrics of [`families`], written by hand.
fn expected(start_ns: u64, now_ns: u64) -> Vec<Metric> {
    use number_data_point::Value::{AsDouble, AsInt};
    let cumulative = AggregationTemporality::Cumulative as i32;
    let path = |gpu, process, queue, path| {
        [
            ("gpu_id", gpu),
            ("kfd_process_id", process),
            ("queue_id", queue),
            ("path", path),
        ]
    };
    let queue = [("gpu_id", "42"), ("kfd_process_id", "1000"), ("queue_id", "3")];
    vec![
        metric(
            "tracer_dispatches_total",
            "Kernel dispatch packets that were published",
            "{dispatch}",
            Data::Sum(Sum {
                data_points: vec![
                    point(path("42", "1000", "3", "doorbell"), start_ns, now_ns, AsInt(7)),
                    point(path("42", "1000", "ended", "unseen"), start_ns, now_ns, AsInt(0)),
                    // It is larger than the type of a whole number.
                    point(
                        path("unknown", "", "other", "doorbell"),
                        start_ns,
                        now_ns,
                        AsDouble(18_446_744_073_709_551_616.0),
                    ),
                ],
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
        ),
        metric(
            "tracer_queue_depth_packets",
            "Packets published and not taken by the GPU, at the last sample",
            "{packet}",
            Data::Gauge(Gauge {
                data_points: vec![point(queue, 0, now_ns, AsInt(i64::MAX))],
            }),
        ),
        metric(
            "tracer_queue_stuck",
            "1 if packets wait and the read index has not moved for 2 s, else 0",
            "",
            Data::Gauge(Gauge {
                data_points: vec![point(queue, 0, now_ns, AsInt(1))],
            }),
        ),
        metric(
            "tracer_kfd_ioctl_seconds",
            "Time in ioctls of /dev/kfd",
            "s",
            Data::Histogram(Histogram {
                data_points: vec![HistogramDataPoint {
                    attributes: attributes([("ioctl", "CREATE_QUEUE")]),
                    start_time_unix_nano: start_ns,
                    time_unix_nano: now_ns,
                    count: 6,
                    sum: Some(7.5),
                    bucket_counts: vec![3, 2, 1],
                    explicit_bounds: vec![1e-7, 0.5],
                    exemplars: Vec::new(),
                    flags: 0,
                    min: None,
                    max: None,
                }],
                aggregation_temporality: cumulative,
            }),
        ),
    ]
}

fn message(metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let resource = Resource {
        attributes: attributes([
            ("service.name", "tracer"),
            ("service.version", "1.2.3"),
            ("service.instance.id", "node1:9478"),
            ("host.name", "node1"),
        ]),
        dropped_attributes_count: 0,
        entity_refs: Vec::new(),
    };
    let scope = InstrumentationScope {
        name: "tracer".to_owned(),
        version: "1.2.3".to_owned(),
        attributes: Vec::new(),
        dropped_attributes_count: 0,
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

#[test]
fn every_field_is_right() {
    let times = Times {
        start_ns: 1_700_000_000_123_456_789,
        now_ns: 1_700_000_015_000_000_001,
    };
    let made = request(&families(), &Series::default(), &origin(), times);
    let decoded = ExportMetricsServiceRequest::decode(&made.encode_to_vec()[..]).unwrap();
    assert_eq!(decoded, message(expected(times.start_ns, times.now_ns)));
}

/// Without the unbounded bucket in the values, what is in no other bucket is in it all the same.
#[test]
fn buckets_have_one_more_count_than_bounds() {
    let value = Value::Histogram {
        sum_ns: 40,
        count: 9,
        buckets: vec![(Some(100), 3), (Some(200), 4)],
    };
    let family = family("tracer_submit_latency_seconds", [(&[], value)]);
    let times = Times { start_ns: 1, now_ns: 2 };
    let made = request(&[family], &Series::default(), &origin(), times);
    let metric = &made.resource_metrics[0].scope_metrics[0].metrics[0];
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert_eq!(histogram.data_points[0].bucket_counts, [3, 4, 2]);
    assert_eq!(histogram.data_points[0].explicit_bounds, [1e-7, 2e-7]);
}

/// A value that is not known is not there. A series that had one before ends: its point has the flag and no value, not 0.
#[test]
fn what_is_not_known_any_more_has_no_value() {
    let times = Times { start_ns: 1, now_ns: 2 };
    let before = families();
    let mut now = families();
    now[0].samples.remove(1);
    now.remove(1);
    let ended = Series::in_families(&before).without(&Series::in_families(&now));
    let made = request(&now, &ended, &origin(), times);
    let metrics = &made.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "tracer_dispatches_total",
            "tracer_queue_depth_packets",
            "tracer_queue_stuck",
            "tracer_kfd_ioctl_seconds"
        ]
    );
    let (Some(Data::Sum(sum)), Some(Data::Gauge(gauge))) = (&metrics[0].data, &metrics[1].data) else {
        panic!("{metrics:?}");
    };
    let ends: Vec<_> = sum.data_points.iter().map(|point| (point.flags, point.value)).collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert_eq!(ends[2], (1, None));
    assert_eq!(
        sum.data_points[2].attributes,
        attributes([
            ("gpu_id", "42"),
            ("kfd_process_id", "1000"),
            ("queue_id", "ended"),
            ("path", "unseen")
        ])
    );
    let only = NumberDataPoint {
        attributes: attributes([("gpu_id", "42"), ("kfd_process_id", "1000"), ("queue_id", "3")]),
        start_time_unix_nano: 0,
        time_unix_nano: 2,
        exemplars: Vec::new(),
        flags: 1,
        value: None,
    };
    assert_eq!(gauge.data_points, [only]);
}

/// The same over the network: the request, and the times of its values.
#[test]
fn a_collector_gets_the_whole_message() {
    let unix_ns = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let collector = Collector::start(|_| ok());
    let before = unix_ns();
    let pusher = Pusher::start(&target(&collector.url, 50), origin(), families).unwrap();
    let started = unix_ns();
    let first = collector.next();
    let second = collector.next();
    let counts = pusher.finish().unwrap();
    let after = unix_ns();
    assert!(counts.taken >= 2 && counts.failed == 0 && counts.has_last, "{counts:?}");

    let mut last = 0;
    for got in [first, second] {
        assert_eq!(got.line, "POST /base/v1/metrics HTTP/1.1");
        assert_eq!(got.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(got.header("user-agent"), Some("tracer/1.2.3"));
        assert!(collector.url.contains(got.header("host").unwrap()));
        let message_got = got.message();
        let metrics = &message_got.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        let point = &sum.data_points[0];
        let (start_ns, now_ns) = (point.start_time_unix_nano, point.time_unix_nano);
        assert!((before..=started).contains(&start_ns), "{before} {start_ns} {started}");
        // The first push comes after the interval.
        let later = start_ns + Duration::from_millis(50).as_nanos() as u64;
        assert!((later..=after).contains(&now_ns) && now_ns > last, "{now_ns}");
        last = now_ns;
        assert_eq!(message_got, message(expected(start_ns, now_ns)));
    }
}
