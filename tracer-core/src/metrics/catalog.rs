//! Every metric: name, meaning, labels. `docs/metrics.md` is made of it.

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; its name ends in `_total` where it is exposed.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Durations in seconds.
    Histogram,
    /// 1, with what it says in its labels.
    Info,
}

impl Kind {
    /// The word of the exposition format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
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
}

/// Labels of one queue; as other exporters of AMD GPUs name them.
const QUEUE: &[&str] = &["gpu_id", "kfd_process_id", "queue_id"];
/// And the way that submissions took.
const QUEUE_PATH: &[&str] = &["gpu_id", "kfd_process_id", "queue_id", "path"];

/// Every metric, in the order of the output.
pub const CATALOG: [Definition; 16] = [
    Definition {
        name: "tracer_dispatches",
        kind: Kind::Counter,
        help: "Kernel dispatch packets that were published",
        labels: QUEUE_PATH,
    },
    Definition {
        name: "tracer_doorbells",
        kind: Kind::Counter,
        help: "Stores to doorbells of AQL queues; one may publish many dispatches or none",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_copies",
        kind: Kind::Counter,
        help: "Submissions to SDMA queues",
        labels: QUEUE_PATH,
    },
    Definition {
        name: "tracer_other_packets",
        kind: Kind::Counter,
        help: "Published packets that are no kernel dispatches",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_unread_packets",
        kind: Kind::Counter,
        help: "Published packets that could not be read in time: what they were is unknown",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_ring_jobs",
        kind: Kind::Counter,
        help: "Jobs on rings of the kernel driver; traced: whether a traced process submitted them",
        labels: &["ring_class", "reason", "traced"],
    },
    Definition {
        name: "tracer_queues",
        kind: Kind::Gauge,
        help: "Queues that live",
        labels: &["gpu_id", "type"],
    },
    Definition {
        name: "tracer_queue_depth_packets",
        kind: Kind::Gauge,
        help: "Packets published and not taken by the GPU, when last looked",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_queue_ring_packets",
        kind: Kind::Gauge,
        help: "Packets that the ring of an AQL queue has room for",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_queue_stuck",
        kind: Kind::Gauge,
        help: "1 if packets wait and the read index has not moved for 2 s, else 0",
        labels: QUEUE,
    },
    Definition {
        name: "tracer_submit_latency_seconds",
        kind: Kind::Histogram,
        help: "From the reserve of packets to the doorbell; only where reserves are watched",
        labels: &[],
    },
    Definition {
        name: "tracer_kfd_ioctl_seconds",
        kind: Kind::Histogram,
        help: "Time in ioctls of /dev/kfd",
        labels: &["ioctl"],
    },
    Definition {
        name: "tracer_kfd_ioctl_errors",
        kind: Kind::Counter,
        help: "Ioctls of /dev/kfd that failed",
        labels: &["ioctl"],
    },
    Definition {
        name: "tracer_events_lost",
        kind: Kind::Counter,
        help: "Events that a source dropped",
        labels: &["source"],
    },
    Definition {
        name: "tracer_watched",
        kind: Kind::Gauge,
        help: "1 if this is watched, else 0: what is not watched has no numbers",
        labels: &["what"],
    },
    Definition {
        name: "tracer_build",
        kind: Kind::Info,
        help: "Version, and whether the GPU is simulated",
        labels: &["version", "simulated"],
    },
];

/// The metric of this name.
#[must_use]
pub fn definition(name: &str) -> Option<&'static Definition> {
    CATALOG.iter().find(|definition| definition.name == name)
}
