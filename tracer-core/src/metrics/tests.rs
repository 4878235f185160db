//! Tests that sums stay right whatever happens to a series.

use super::families::About;
use super::*;
use crate::capabilities::Capabilities;
use crate::live::{Live, Picture};
use crate::sample;
use crate::tables::{Copy, Dispatch, Loss, OtherPacket, PacketKind, Queue};

const S: u64 = 1_000_000_000;

fn dispatch(queue: u32, time_ns: u64) -> Fact {
    Fact::Dispatch(Dispatch {
        queue,
        ..sample::dispatch(0, time_ns)
    })
}

fn queue(number: u32, queue_id: u32, destroyed_ns: Option<u64>) -> Fact {
    Fact::Queue(Queue {
        queue: number,
        queue_id: Some(queue_id),
        gpu_id: Some(1),
        destroyed_ns,
        ..sample::queue(0)
    })
}

fn families(metrics: &Metrics) -> Vec<Family> {
    watching(metrics, sample::EVERYTHING)
}

/// Returns every family of a capture that watches this.
fn watching(metrics: &Metrics, watched: Capabilities) -> Vec<Family> {
    let picture = Picture {
        watched,
        ..Picture::default()
    };
    metrics.families(&picture, &About::default())
}

/// Returns every series of a metric with its value.
fn series(metrics: &Metrics, name: &str) -> Vec<(Vec<String>, u64)> {
    families(metrics)
        .into_iter()
        .filter(|family| family.definition.name == name)
        .flat_map(|family| family.samples)
        .map(|sample| {
            let Value::Number(n) = sample.value else {
                panic!("a histogram")
            };
            (sample.labels.into_iter().map(|(_, value)| value).collect(), n)
        })
        .collect()
}

fn sum(metrics: &Metrics, name: &str) -> u64 {
    series(metrics, name).iter().map(|(_, n)| n).sum()
}

#[test]
fn a_queue_has_its_own_series_until_a_while_after_its_end() {
    let mut metrics = Metrics::new();
    for _ in 0..5 {
        metrics.add(&dispatch(0, S));
    }
    metrics.add(&queue(0, 3, None));
    let own = [(["1", "7", "3", "doorbell"].map(str::to_owned).to_vec(), 5)];
    assert_eq!(series(&metrics, "tracer_dispatches"), own);
    assert_eq!(sum(&metrics, "tracer_queues"), 1);
    metrics.add(&queue(0, 3, Some(2 * S)));
    metrics.advance(3 * S);
    assert_eq!(series(&metrics, "tracer_dispatches"), own);
    assert_eq!(sum(&metrics, "tracer_queues"), 0);
    metrics.advance(2 * S + KEPT_NS);
    let ended = [(["1", "", "ended", "doorbell"].map(str::to_owned).to_vec(), 5)];
    assert_eq!(series(&metrics, "tracer_dispatches"), ended);
}

#[test]
fn churning_queues_keep_the_number_of_series_and_the_sums() {
    let mut metrics = Metrics::new();
    for number in 0..20_000 {
        metrics.add(&dispatch(number, u64::from(number) * S));
        metrics.add(&queue(number, number % 5000, Some(u64::from(number) * S)));
        metrics.advance(u64::from(number) * S);
    }
    assert_eq!(sum(&metrics, "tracer_dispatches"), 20_000);
    assert!(series(&metrics, "tracer_dispatches").len() <= MAX_QUEUES + 2);
}

#[test]
fn too_many_at_once_are_other() {
    let mut metrics = Metrics::new();
    for number in 0..MAX_QUEUES as u32 + 10 {
        metrics.add(&dispatch(number, S));
    }
    assert_eq!(sum(&metrics, "tracer_dispatches"), MAX_QUEUES as u64 + 10);
    let other = series(&metrics, "tracer_dispatches")
        .into_iter()
        .find(|(labels, _)| labels[2] == OTHER);
    assert_eq!(other.map(|(_, n)| n), Some(10));
}

#[test]
fn invented_names_are_bounded() {
    let mut metrics = Metrics::new();
    for n in 0..10_000 {
        metrics.add(&Fact::Loss(Loss {
            time_ns: S,
            source: format!("source-{n}"),
            count: 1,
        }));
    }
    assert_eq!(sum(&metrics, "tracer_events_lost"), 10_000);
    assert!(series(&metrics, "tracer_events_lost").len() <= MAX_NAMES + 1);
}

#[test]
fn a_source_that_is_counted_has_a_number_before_it_loses_anything() {
    let mut metrics = Metrics::new();
    let about = About {
        loss_sources: vec!["doorbell-ring", "ioctl-ring"],
        ..About::default()
    };
    let lost = |metrics: &Metrics| {
        let families = metrics.families(&Live::new().picture(), &about);
        let family = families
            .into_iter()
            .find(|family| family.definition.name == "tracer_events_lost");
        let samples = family.expect("a family").samples.into_iter();
        samples
            .map(|sample| (sample.labels[0].1.clone(), sample.value))
            .collect::<BTreeMap<_, _>>()
    };
    let zeros = ["doorbell-ring", "ioctl-ring"].map(|source| (source.to_owned(), Value::Number(0)));
    assert_eq!(lost(&metrics), BTreeMap::from(zeros));
    for source in ["ioctl-ring", "hold-ring"] {
        metrics.add(&Fact::Loss(Loss {
            time_ns: S,
            source: source.to_owned(),
            count: 2,
        }));
    }
    let counted = [("doorbell-ring", 0), ("hold-ring", 2), ("ioctl-ring", 2)];
    let counted = counted.map(|(source, n)| (source.to_owned(), Value::Number(n)));
    assert_eq!(lost(&metrics), BTreeMap::from(counted));
}

#[test]
fn no_series_is_there_twice_and_every_one_is_in_the_catalogue() {
    let mut metrics = Metrics::new();
    // Queues that use the same KFD id one after the other, and two queues whose ids are unknown.
    for number in 0..4 {
        metrics.add(&dispatch(number, S));
    }
    metrics.add(&queue(0, 1, Some(S)));
    metrics.add(&queue(1, 1, None));
    metrics.add(&Fact::Copy(Copy {
        queue: None,
        ..sample::copy(S)
    }));
    let mut seen = std::collections::HashSet::new();
    for family in families(&metrics) {
        for sample in family.samples {
            let names: Vec<&str> = sample.labels.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, family.definition.labels);
            assert!(
                seen.insert((family.definition.name, sample.labels.clone())),
                "{sample:?}"
            );
        }
    }
    assert_eq!(sum(&metrics, "tracer_dispatches"), 4);
    assert_eq!(sum(&metrics, "tracer_copies"), 1);
}

#[test]
fn a_histogram_counts_each_duration_in_one_bucket() {
    let mut buckets = Buckets::default();
    for ns in [0, 100, 101, 9_999_999_999, 10_000_000_001, u64::MAX] {
        buckets.add(ns);
    }
    let each = buckets.each();
    assert_eq!((each[0], each[1]), ((Some(100), 2), (Some(200), 1)));
    assert_eq!(each.last(), Some(&(None, 2)));
    assert_eq!(each.iter().map(|(_, n)| n).sum::<u64>(), buckets.count);
}

#[test]
fn runs_count_as_what_they_stand_for_and_again_as_aggregated() {
    let mut metrics = Metrics::new();
    let names = ["tracer_dispatches", "tracer_doorbells"];
    let aggregated = ["tracer_dispatches_aggregated", "tracer_doorbells_aggregated"];
    // The series exist from the start, because a counter that begins above 0 has no increase.
    assert_eq!(
        aggregated.map(|name| series(&metrics, name)),
        [vec![(vec![], 0)], vec![(vec![], 0)]]
    );
    metrics.add(&dispatch(0, S));
    metrics.add(&Fact::Doorbell(sample::doorbell(0, S)));
    metrics.add(&Fact::DispatchRun(sample::dispatch_run(1, 9, S)));
    metrics.add(&Fact::DoorbellRun(sample::doorbell_run(1, 4, S)));
    assert_eq!(names.map(|name| sum(&metrics, name)), [10, 5]);
    assert_eq!(aggregated.map(|name| sum(&metrics, name)), [9, 4]);
}

#[test]
fn what_cannot_be_counted_has_no_series() {
    let mut metrics = Metrics::new();
    metrics.add(&dispatch(0, S));
    metrics.add(&queue(0, 1, None));
    let of_kind = |number: u32, kind: &str| {
        let Fact::Queue(mut queue) = queue(number, number + 1, None) else {
            unreachable!()
        };
        queue.kind = kind.to_owned();
        Fact::Queue(queue)
    };
    metrics.add(&of_kind(1, "compute-pm4"));
    metrics.add(&of_kind(2, "sdma"));
    metrics.add(&Fact::Copy(Copy {
        queue: Some(2),
        ..sample::copy(S)
    }));
    let ids = |watched: Capabilities, name: &str| {
        let mut families = watching(&metrics, watched).into_iter();
        let family = families.find(|family| family.definition.name == name);
        let samples = family.into_iter().flat_map(|family| family.samples);
        samples.map(|sample| sample.labels[2].1.clone()).collect::<Vec<_>>()
    };
    let counters = [
        "tracer_dispatches",
        "tracer_doorbells",
        "tracer_other_packets",
        "tracer_unread_packets",
        "tracer_copies",
    ];
    // Queues of other types have no AQL packets.
    let all = counters.map(|name| ids(sample::EVERYTHING, name));
    assert_eq!(
        all,
        [["1"], ["1"], ["1"], ["1"], ["3"]].map(|ids| ids.map(str::to_owned).to_vec())
    );
    assert_eq!(
        counters.map(|name| ids(Capabilities::default(), name)),
        [const { Vec::<String>::new() }; 5]
    );
    let doorbells = Capabilities {
        packets: false,
        ..sample::EVERYTHING
    };
    let some = counters.map(|name| ids(doorbells, name).len());
    assert_eq!(some, [0, 1, 0, 0, 1], "the packets were not read");
    // A vendor packet of an unknown format may launch a kernel.
    metrics.add(&Fact::Packet(OtherPacket {
        kind: PacketKind::VendorOther,
        unread: None,
        ..sample::unread(1, 1, S)
    }));
    let found = series(&metrics, "tracer_dispatches");
    assert_eq!(found, []);
    assert_eq!(sum(&metrics, "tracer_other_packets"), 1);
}

#[test]
fn a_process_has_the_names_of_its_cgroup_as_long_as_its_queues_have_series() {
    let mut metrics = Metrics::new();
    let mut process = sample::process(7);
    process.unit = Some("train.service".to_owned());
    process.pod = Some("2fb3c7a4-1d8e-4c43-9c57-0a3c1a2b9d10".to_owned());
    let named = [["7", "app", "train.service", "", "2fb3c7a4-1d8e-4c43-9c57-0a3c1a2b9d10"]];
    let named = named.map(|labels| (labels.map(str::to_owned).to_vec(), 1));
    // Without queues there are no series that names could be joined with.
    metrics.add(&Fact::Process(process.clone()));
    assert_eq!(series(&metrics, "tracer_process_info"), []);
    metrics.add(&queue(0, 3, None));
    metrics.add(&Fact::Process(process.clone()));
    metrics.add(&Fact::Process(sample::process(8)));
    assert_eq!(series(&metrics, "tracer_process_info"), named);
    // The series of an ended queue stay for a while, and another process gets the id.
    process.exit_ns = Some(2 * S);
    metrics.add(&queue(0, 3, Some(2 * S)));
    metrics.add(&Fact::Process(process));
    let mut other = sample::process(7);
    other.first_ns = 3 * S;
    metrics.add(&Fact::Process(other));
    metrics.advance(4 * S);
    assert_eq!(series(&metrics, "tracer_process_info"), named);
    metrics.advance(2 * S + KEPT_NS);
    assert_eq!(series(&metrics, "tracer_process_info"), []);
}
