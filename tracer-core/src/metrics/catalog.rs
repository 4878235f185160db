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
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name without the suffixes that the exposition format adds (`_total`, `_bucket`).
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

/// Declares the metrics: kind, name, labels and unit, and a Prometheus query that uses the metric. Its doc comment is its meaning.
macro_rules! catalog {
    ($($(#[doc = $help:literal])+ $kind:ident $name:literal by $labels:expr, in $unit:literal: $example:literal;)+) => {
        /// Every metric, in the order of the output.
        pub const CATALOG: [Definition; [$($name),+].len()] = [$(Definition {
            name: $name,
            kind: Kind::$kind,
            help: concat!($($help),+).trim_ascii_start(),
            labels: $labels,
            unit: $unit,
            example: $example,
        }),+];
    };
}

catalog! {
    /// Kernel dispatch packets that were published
    Counter "tracer_dispatches" by QUEUE_PATH, in "dispatches":
        "sum by (gpu_id, path) (rate(tracer_dispatches_total[1m]))";
    /// Stores to doorbells of AQL queues; one may publish many dispatches or none
    Counter "tracer_doorbells" by QUEUE, in "stores":
        "sum(rate(tracer_dispatches_total[1m])) / sum(rate(tracer_doorbells_total[1m]))";
    /// Submissions to SDMA queues
    Counter "tracer_copies" by QUEUE_PATH, in "submissions":
        "sum by (gpu_id, path) (rate(tracer_copies_total[1m]))";
    /// Published packets other than kernel dispatches
    Counter "tracer_other_packets" by QUEUE, in "packets":
        "sum by (kfd_process_id, queue_id) (rate(tracer_other_packets_total[1m]))";
    /// Published packets of unknown kind: tracer could not read them in time
    Counter "tracer_unread_packets" by QUEUE, in "packets":
        "sum by (instance) (increase(tracer_unread_packets_total[5m]))";
    /// Jobs on rings of the kernel driver; traced: whether a traced process submitted them
    Counter "tracer_ring_jobs" by &["ring_class", "reason", "traced"], in "jobs":
        "sum by (ring_class, reason, traced) (rate(tracer_ring_jobs_total[1m]))";
    /// Dispatches that the trace counts in runs, without a row each, because the disk was too slow; 0 if tracer writes
    /// no trace
    Counter "tracer_dispatches_aggregated" by &[], in "dispatches":
        "sum by (instance) (rate(tracer_dispatches_aggregated_total[5m]))";
    /// Doorbells that the trace counts in runs, without a row each
    Counter "tracer_doorbells_aggregated" by &[], in "stores":
        "sum by (instance) (rate(tracer_doorbells_aggregated_total[5m]))";
    /// Existing user queues
    Gauge "tracer_queues" by &["gpu_id", "type"], in "queues":
        "sum by (gpu_id, type) (tracer_queues)";
    /// Packets published and not taken by the GPU, at the last sample
    Gauge "tracer_queue_depth_packets" by QUEUE, in "packets":
        "tracer_queue_depth_packets / tracer_queue_ring_packets";
    /// Size of the ring of an AQL queue, in packets
    Gauge "tracer_queue_ring_packets" by QUEUE, in "packets":
        "min by (gpu_id) (tracer_queue_ring_packets)";
    /// 1 if packets wait and the read index has not moved for 2 s, else 0
    Gauge "tracer_queue_stuck" by QUEUE, in "0 or 1":
        "sum by (gpu_id) (tracer_queue_stuck)";
    /// Time from the reserve of packets to the doorbell; only where tracer watches reserves
    Histogram "tracer_submit_latency_seconds" by &[], in "seconds":
        "histogram_quantile(0.99, sum by (le) (rate(tracer_submit_latency_seconds_bucket[5m])))";
    /// Time in ioctls of /dev/kfd
    Histogram "tracer_kfd_ioctl_seconds" by &["ioctl"], in "seconds":
        "histogram_quantile(0.99, sum by (ioctl, le) (rate(tracer_kfd_ioctl_seconds_bucket[5m])))";
    /// Ioctls of /dev/kfd that failed
    Counter "tracer_kfd_ioctl_errors" by &["ioctl"], in "calls":
        "sum by (ioctl) (increase(tracer_kfd_ioctl_errors_total[5m]))";
    /// Events that a source dropped
    Counter "tracer_events_lost" by &["source"], in "events":
        "sum by (source) (increase(tracer_events_lost_total[5m])) > 0";
    /// 1 if tracer watches this, else 0; what is not watched has no values
    Gauge "tracer_watched" by &["what"], in "0 or 1":
        "tracer_watched == 0";
    /// Always 1; the labels are the names of a process that has queues, by the path of its cgroup
    Gauge "tracer_process_info" by &["kfd_process_id", "comm", "unit", "container", "pod"], in "":
        "sum by (pod) (sum by (instance, kfd_process_id) (rate(tracer_dispatches_total[1m])) * on (instance, kfd_process_id) group_left (pod) tracer_process_info)";
    /// Always 1; the labels are the version, and whether the GPU is simulated
    Gauge "tracer_build_info" by &["version", "simulated"], in "":
        "count by (version, simulated) (tracer_build_info)";
}

/// Every label, with its meaning.
pub const LABELS: [(&str, &str); 17] = [
    (
        "gpu_id",
        "GPU, by the KFD's id (`/sys/class/kfd/kfd/topology/nodes/*/gpu_id`)",
    ),
    ("kfd_process_id", "Process of the queue, in the initial pid namespace"),
    ("comm", "Name of the process's program, at most 15 bytes"),
    (
        "unit",
        "The process's systemd unit, the system's or a user's; empty if the path of its cgroup, as tracer sees it, names none, or \
         was not read. A user may choose the names in a part of the tree",
    ),
    (
        "container",
        "The id of the process's container, 64 digits; empty if the path names none",
    ),
    (
        "pod",
        "The UID of the process's Kubernetes pod; empty if the path names none",
    ),
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
