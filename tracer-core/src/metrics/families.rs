//! The counters as samples with labels, for an exposition format.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::{Definition, definition};
use super::histogram::Buckets;
use super::{Metrics, OTHER};
use crate::known::{Basis, ByPath, Total};
use crate::live::Picture;
use crate::tally::{Aggregated, Tally};
use crate::words::Named;

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The definition of the metric.
    pub definition: &'static Definition,
    /// The series of the metric, each once.
    pub samples: Vec<Sample>,
}

/// A series and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The labels, in the order of the definition.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value of a counter or a gauge.
    Number(u64),
    /// The value of a histogram.
    Histogram {
        /// Sum of the durations, ns.
        sum_ns: u64,
        /// Number of durations.
        count: u64,
        /// Upper end in ns (`None`: unbounded) and own count of each bucket.
        buckets: Vec<(Option<u64>, u64)>,
    },
}

impl From<&Buckets> for Value {
    fn from(buckets: &Buckets) -> Self {
        Self::Histogram {
            sum_ns: buckets.sum_ns,
            count: buckets.count,
            buckets: buckets.each(),
        }
    }
}

/// Information that neither facts nor the picture contain.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Version of the program.
    pub version: String,
    /// Sources whose losses are counted. A source that has lost nothing yet has the number 0. Of any other source, it is unknown
    /// whether it loses events, until it reports a loss.
    pub loss_sources: Vec<&'static str>,
}

/// The counts with the same labels.
#[derive(Default)]
struct Series {
    tally: Tally,
    /// Whether a queue among them may take AQL packets.
    packets: bool,
    /// Whether a queue among them may take the commands of a copy engine.
    copies: bool,
}

impl Series {
    fn add(&mut self, tally: &Tally, packets: bool, copies: bool) {
        self.tally.merge(tally);
        self.packets |= packets;
        self.copies |= copies;
    }
}

/// The labels of a queue: GPU, process, KFD queue id.
type Labels = [String; 3];

impl Metrics {
    /// Returns every metric with its series. Momentary values (depth, stuck) come from the picture, and so does what is watched: a
    /// count that is not known has no series.
    #[must_use]
    pub fn families(&self, picture: &Picture, about: &About) -> Vec<Family> {
        let mut out = Collector::default();
        let aggregated = self.by_queue(picture, &mut out);
        for ((class, reason, traced), &n) in &self.rings {
            let labels = [class.clone(), reason.clone(), traced.to_string()];
            out.number("tracer_ring_jobs", labels, n);
        }
        out.number("tracer_dispatches_aggregated", [], aggregated.dispatches);
        out.number("tracer_doorbells_aggregated", [], aggregated.doorbells);
        self.living(&mut out);
        self.places(&mut out);
        self.now(picture, &mut out);
        if self.latency.count > 0 {
            out.put("tracer_submit_latency_seconds", [], (&self.latency).into());
        }
        for (name, (times, errors)) in &self.ioctls {
            out.put("tracer_kfd_ioctl_seconds", [name.clone()], times.into());
            out.number("tracer_kfd_ioctl_errors", [name.clone()], *errors);
        }
        self.lost(about, &mut out);
        for (what, watched) in picture.watched.each() {
            out.number("tracer_watched", [what.to_owned()], watched.into());
        }
        out.number(
            "tracer_build_info",
            [about.version.clone(), picture.simulated.is_some().to_string()],
            1,
        );
        out.families
    }

    /// Adds losses. Their series exist from the start, not from the first loss on, because a counter that begins above 0 has no
    /// increase.
    fn lost(&self, about: &About, out: &mut Collector) {
        let mut all: BTreeMap<&str, u64> = about.loss_sources.iter().map(|&source| (source, 0)).collect();
        all.extend(self.losses.iter().map(|(source, &n)| (source.as_str(), n)));
        for (source, n) in all {
            out.number("tracer_events_lost", [source.to_owned()], n);
        }
    }

    /// Adds counters of queues, and returns the part that is recorded only as runs. If a KFD id is used again, its series continues
    /// where the series of the previous queue ended.
    fn by_queue(&self, picture: &Picture, out: &mut Collector) -> Aggregated {
        let mut all: BTreeMap<Labels, Series> = BTreeMap::new();
        for queue in self.queues.values() {
            let labels = [text(queue.gpu_id), text(queue.pid), text(queue.queue_id)];
            let series = all.entry(labels).or_default();
            let (aql, sdma) = queue.takes();
            series.add(&queue.tally, aql, sdma);
        }
        for (&gpu, counts) in &self.ended {
            let labels = [text(gpu), String::new(), "ended".to_owned()];
            let series = all.entry(labels).or_default();
            series.add(counts, true, true);
        }
        if self.other != Tally::default() {
            let labels = [String::new(), String::new(), OTHER.to_owned()];
            let series = all.entry(labels).or_default();
            series.add(&self.other, true, true);
        }
        let nothing = BTreeSet::new();
        let mut together = Tally::default();
        for (labels, Series { tally, packets, copies }) in &all {
            together.merge(tally);
            let basis = Basis {
                watched: picture.watched,
                unread: &nothing,
                to_end: true,
                // A queue of PM4 commands has no series, and does not change those of others.
                opaque_queues: false,
                open_queues: false,
                unknown_formats: tally.unknown_formats > 0,
                unread_unseen: tally.unread_unseen > 0,
                thunks: true,
            };
            let by_path = |name: &str, paths: ByPath, out: &mut Collector| {
                for (path, count) in paths.each() {
                    let [gpu, process, queue] = labels.clone();
                    // A path that was not used on a queue has no series: 16 times as many series would carry no information.
                    if let Some(count) = count.filter(|&count| count > 0) {
                        out.number(name, [gpu, process, queue, path.name().to_owned()], count);
                    }
                }
            };
            by_path("tracer_dispatches", basis.dispatches(&tally.dispatches), out);
            if *copies {
                by_path("tracer_copies", basis.copies(&tally.copies), out);
            }
            if *packets && basis.knows(Total::Doorbells) {
                out.number("tracer_doorbells", labels.clone(), tally.doorbells);
            }
            if *packets && basis.knows(Total::Packets) {
                out.number("tracer_other_packets", labels.clone(), tally.other_packets);
                out.number("tracer_unread_packets", labels.clone(), tally.unread);
            }
        }
        together.aggregated
    }

    fn living(&self, out: &mut Collector) {
        let mut living: BTreeMap<[String; 2], u64> = BTreeMap::new();
        for queue in self.queues.values().filter(|queue| queue.ended_ns.is_none()) {
            let kind = queue.kind.clone().unwrap_or_else(|| "unknown".to_owned());
            *living.entry([text(queue.gpu_id), kind]).or_default() += 1;
        }
        for (labels, n) in living {
            out.number("tracer_queues", labels, n);
        }
    }

    /// Adds where the processes run whose queues have series.
    fn places(&self, out: &mut Collector) {
        for process in self.processes.values() {
            let name = |name: &Option<String>| name.clone().unwrap_or_default();
            let [unit, container, pod] = [&process.unit, &process.container, &process.pod].map(name);
            let labels = [process.pid.to_string(), process.comm.clone(), unit, container, pod];
            out.number("tracer_process_info", labels, 1);
        }
    }

    fn now(&self, picture: &Picture, out: &mut Collector) {
        let mut seen = std::collections::BTreeSet::new();
        for row in &picture.queues {
            let labels: Labels = [text(row.gpu_id), text(row.pid), text(row.queue_id)];
            let has_series = !row.ended && self.queues.contains_key(&row.queue);
            // Queues whose ids are unknown share their labels: only one of them can have a value.
            if !has_series || row.queue_id.is_none() || !seen.insert(labels.clone()) {
                continue;
            }
            if let Some(depth) = row.depth {
                out.number("tracer_queue_depth_packets", labels.clone(), depth);
                out.number("tracer_queue_stuck", labels.clone(), row.stuck.is_some().into());
            }
            if let Some(ring) = row.ring_packets {
                out.number("tracer_queue_ring_packets", labels, ring);
            }
        }
    }
}

/// Collects families.
#[derive(Default)]
struct Collector {
    families: Vec<Family>,
}

impl Collector {
    fn number<const N: usize>(&mut self, name: &str, labels: [String; N], n: u64) {
        self.put(name, labels, Value::Number(n));
    }

    fn put<const N: usize>(&mut self, name: &str, labels: [String; N], value: Value) {
        let Some(definition) = definition(name) else { return };
        let labels = definition.labels.iter().copied().zip(labels).collect();
        let sample = Sample { labels, value };
        let mut families = self.families.iter_mut();
        match families.find(|family| family.definition.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family {
                definition,
                samples: vec![sample],
            }),
        }
    }
}

/// Returns a number as a label, or `unknown`.
fn text(n: Option<u32>) -> String {
    n.map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}
