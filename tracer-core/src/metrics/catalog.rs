//! Every metric: name, meaning, labels. `docs/metrics.md` is generated from it.

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// A number that only grows. Its name ends in `_total` where it is exposed.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Durations in seconds.
    Histogram,
    /// The number 1, with information in its labels.
    Info,
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name without the suffixes that the exposition format adds (`_total`, `_bucket`, `_info`).
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Meaning.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// The unit of the number.
    pub unit: &'static str,
    /// A Prometheus query that uses it.
    pub example: &'static str,
}

/// Labels of one queue, named as in other exporters for AMD GPUs.
const QUEUE: &[&str] = &["gpu_id", "kfd_process_id", "queue_id"];
/// Labels of one queue, and the path of the submissions.
const QUEUE_PATH: &[&str] = &["gpu_id", "kfd_process_id", "queue_id", "path"];

/// Every metric, in the order of the output.
pub const CATALOG: [Definition; 18] = [
    Definition {
        name: "tracer_dispatches",
        kind: Kind::Counter,
        help: "Kernel dispatch packets that were published",
        labels: QUEUE_PATH,
        unit: "dispatches",
        example: "sum by (gpu_id, path) (rate(tracer_dispatches_total[1m]))",
    },
    Definition {
        name: "tracer_doorbells",
        kind: Kind::Counter,
        help: "Stores to doorbells of AQL queues; one may publish many dispatches or none",
        labels: QUEUE,
        unit: "stores",
        example: "sum(rate(tracer_dispatches_total[1m])) / sum(rate(tracer_doorbells_total[1m]))",
    },
    Definition {
        name: "tracer_copies",
        kind: Kind::Counter,
        help: "Submissions to SDMA queues",
        labels: QUEUE_PATH,
        unit: "submissions",
        example: "sum by (gpu_id, path) (rate(tracer_copies_total[1m]))",
    },
    Definition {
        name: "tracer_other_packets",
        kind: Kind::Counter,
        help: "Published packets other than kernel dispatches",
        labels: QUEUE,
        unit: "packets",
        example: "sum by (kfd_process_id, queue_id) (rate(tracer_other_packets_total[1m]))",
    },
    Definition {
        name: "tracer_unread_packets",
        kind: Kind::Counter,
        help: "Published packets of unknown kind: tracer could not read them in time",
        labels: QUEUE,
        unit: "packets",
        example: "sum by (instance) (increase(tracer_unread_packets_total[5m]))",
    },
    Definition {
        name: "tracer_ring_jobs",
        kind: Kind::Counter,
        help: "Jobs on rings of the kernel driver; traced: whether a traced process submitted them",
        labels: &["ring_class", "reason", "traced"],
        unit: "jobs",
        example: "sum by (ring_class, reason, traced) (rate(tracer_ring_jobs_total[1m]))",
    },
    Definition {
        name: "tracer_dispatches_aggregated",
        kind: Kind::Counter,
        help: "Dispatches that the trace counts in runs, without a row each, because the disk was too slow; 0 if tracer writes no trace",
        labels: &[],
        unit: "dispatches",
        example: "sum by (instance) (rate(tracer_dispatches_aggregated_total[5m]))",
    },
    Definition {
        name: "tracer_doorbells_aggregated",
        kind: Kind::Counter,
        help: "Doorbells that the trace counts in runs, without a row each",
        labels: &[],
        unit: "stores",
        example: "sum by (instance) (rate(tracer_doorbells_aggregated_total[5m]))",
    },
    Definition {
        name: "tracer_queues",
        kind: Kind::Gauge,
        help: "Existing user queues",
        labels: &["gpu_id", "type"],
        unit: "queues",
        example: "sum by (gpu_id, type) (tracer_queues)",
    },
    Definition {
        name: "tracer_queue_depth_packets",
        kind: Kind::Gauge,
        help: "Packets published and not taken by the GPU, at the last sample",
        labels: QUEUE,
        unit: "packets",
        example: "tracer_queue_depth_packets / tracer_queue_ring_packets",
    },
    Definition {
        name: "tracer_queue_ring_packets",
        kind: Kind::Gauge,
        help: "Size of the ring of an AQL queue, in packets",
        labels: QUEUE,
        unit: "packets",
        example: "min by (gpu_id) (tracer_queue_ring_packets)",
    },
    Definition {
        name: "tracer_queue_stuck",
        kind: Kind::Gauge,
        help: "1 if packets wait and the read index has not moved for 2 s, else 0",
        labels: QUEUE,
        unit: "0 or 1",
        example: "sum by (gpu_id) (tracer_queue_stuck)",
    },
    Definition {
        name: "tracer_submit_latency_seconds",
        kind: Kind::Histogram,
        help: "Time from the reserve of packets to the doorbell; only where tracer watches reserves",
        labels: &[],
        unit: "seconds",
        example: "histogram_quantile(0.99, sum by (le) (rate(tracer_submit_latency_seconds_bucket[5m])))",
    },
    Definition {
        name: "tracer_kfd_ioctl_seconds",
        kind: Kind::Histogram,
        help: "Time in ioctls of /dev/kfd",
        labels: &["ioctl"],
        unit: "seconds",
        example: "histogram_quantile(0.99, sum by (ioctl, le) (rate(tracer_kfd_ioctl_seconds_bucket[5m])))",
    },
    Definition {
        name: "tracer_kfd_ioctl_errors",
        kind: Kind::Counter,
        help: "Ioctls of /dev/kfd that failed",
        labels: &["ioctl"],
        unit: "calls",
        example: "sum by (ioctl) (increase(tracer_kfd_ioctl_errors_total[5m]))",
    },
    Definition {
        name: "tracer_events_lost",
        kind: Kind::Counter,
        help: "Events that a source dropped",
        labels: &["source"],
        unit: "events",
        example: "sum by (source) (increase(tracer_events_lost_total[5m])) > 0",
    },
    Definition {
        name: "tracer_watched",
        kind: Kind::Gauge,
        help: "1 if tracer watches this, else 0; what is not watched has no values",
        labels: &["what"],
        unit: "0 or 1",
        example: "tracer_watched == 0",
    },
    Definition {
        name: "tracer_build",
        kind: Kind::Info,
        help: "Version, and whether the GPU is simulated",
        labels: &["version", "simulated"],
        unit: "",
        example: "count by (version, simulated) (tracer_build_info)",
    },
];

/// Every label, with its meaning.
pub const LABELS: [(&str, &str); 13] = [
    (
        "gpu_id",
        "GPU, by the KFD's id (`/sys/class/kfd/kfd/topology/nodes/*/gpu_id`)",
    ),
    ("kfd_process_id", "Process of the queue, in the initial pid namespace"),
    (
        "queue_id",
        "The KFD's id of the queue; `ended`: those of the GPU that ended more than five minutes ago, together; `other`: \
         those beyond a thousand at once",
    ),
    (
        "path",
        "The way that submissions took: `doorbell`: a store from user space; `ring`: a job on a ring of the kernel driver; \
         `thunk`: the library's call; `unseen`: past every probe",
    ),
    ("type", "Type of the queue"),
    (
        "ring_class",
        "Class of the ring of the kernel driver: `gfx`, `comp`, `sdma` and others",
    ),
    (
        "reason",
        "Why the driver created the job for itself; empty if a process submitted it",
    ),
    ("traced", "Whether a traced process submitted it"),
    ("ioctl", "Name of the call, without `AMDKFD_IOC_`"),
    ("source", "Where events were dropped: a buffer, a map, a limit"),
    ("what", "What tracer can watch"),
    ("version", "Of tracer"),
    ("simulated", "Whether the GPU is simulated"),
];

/// Returns the metric with this name.
#[must_use]
pub fn definition(name: &str) -> Option<&'static Definition> {
    CATALOG.iter().find(|definition| definition.name == name)
}
