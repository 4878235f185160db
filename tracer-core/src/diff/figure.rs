//! The figures that are compared: which each table has, what they count, and what can hide a part of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{bytes, duration};

/// A table of a diff.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Table {
    /// Totals of the recording, in one row.
    Total,
    /// Kernels, by name.
    Kernel,
    /// Submissions, by the path that they took.
    Path,
    /// User queues, by their role.
    Queue,
    /// Functions of HIP, HSA and OpenCL.
    Api,
    /// Ioctls of KFD and DRM devices, by name.
    Ioctl,
    /// Layers of time: API classes and ioctls.
    Layer,
    /// Copies, by direction.
    Copy,
}

impl Table {
    /// Every table, in the order of a report.
    pub const ALL: [Self; 8] = [
        Self::Total,
        Self::Kernel,
        Self::Path,
        Self::Queue,
        Self::Api,
        Self::Ioctl,
        Self::Layer,
        Self::Copy,
    ];
}

/// The meaning of the numbers of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A number of things. Two counts differ or not.
    Count,
    /// A number of bytes, in the same way.
    Bytes,
    /// Nanoseconds. Two runs of the same program differ, too.
    Time,
    /// Packets that waited at a time. It depends on times.
    Level,
}

impl Kind {
    /// Returns whether a difference between two recordings is a fact about them, and not a measurement that varies.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Count | Self::Bytes)
    }

    /// Formats a number, which can be a median between two numbers.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        let whole = value.round() as u64;
        match self {
            Self::Time => duration(whole),
            Self::Bytes => bytes(whole),
            Self::Count | Self::Level if value.fract() == 0.0 => whole.to_string(),
            Self::Count | Self::Level => format!("{value:.1}"),
        }
    }
}

/// A part of a recording that lost events can make wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Domain {
    /// Packets and doorbells of AQL queues.
    Submissions,
    /// Names of kernels.
    Names,
    /// User queues.
    Queues,
    /// SDMA submissions.
    Copies,
    /// Calls of API functions.
    Calls,
    /// Ioctls.
    Ioctls,
    /// Jobs on rings of the driver.
    Rings,
}

impl Domain {
    const ALL: [Self; 7] = [
        Self::Submissions,
        Self::Names,
        Self::Queues,
        Self::Copies,
        Self::Calls,
        Self::Ioctls,
        Self::Rings,
    ];

    /// Returns what lost events of a source can make wrong: everything, unless less is known.
    pub(super) fn hidden_by(source: &str) -> &'static [Self] {
        match source {
            "reserve-ring"
            | "missed-reserve"
            | "unattached-reserve"
            | "driver-ring"
            | "driver-map"
            | "driver-event-ring"
            | "missed-driver"
            | "missed-driver-event"
            | "missed-stops"
            | "stack-ring"
            | "stack-limit" => &[],
            "api-ring" | "api-map" | "api-depth" | "missed-api" | "unattached-api" => &[Self::Calls],
            "doorbell-ring" | "packets-ring" | "signal-unread" | "missed-doorbell" | "unattached-doorbell" => {
                &[Self::Submissions, Self::Names, Self::Queues]
            }
            // Without a CREATE_QUEUE or an allocation, the role of a queue and the direction of a copy are unknown.
            "ioctl-ring" | "ioctl-map" | "missed-ioctl" => &[Self::Ioctls, Self::Queues, Self::Copies],
            "sdma-ring" | "missed-sdma" | "unattached-sdma" => &[Self::Copies, Self::Queues],
            "hsa-queue-ring" | "missed-hsa-queue" | "unattached-hsa-queue" | "topology-unread" => &[Self::Queues],
            "code-object-ring"
            | "missed-code-object"
            | "unattached-code-object"
            | "model-kernels"
            | "code-object-list" => &[Self::Names],
            "ring-job-ring" | "missed-ring" | "model-ring-jobs" => &[Self::Rings],
            _ => &Self::ALL,
        }
    }

    /// Returns every part: what an end that was not recorded makes wrong.
    pub(super) const fn all() -> &'static [Self] {
        &Self::ALL
    }
}

/// A figure of the rows of a table.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name.
    pub name: &'static str,
    /// The meaning of its numbers.
    pub kind: Kind,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// What lost events must not have hidden.
    pub(super) domains: &'static [Domain],
    /// Whether a row that a recording does not have has the value 0. Otherwise it has no value.
    pub(super) zero: bool,
}

const SUBMISSIONS: &[Domain] = &[Domain::Submissions];
const KERNELS: &[Domain] = &[Domain::Submissions, Domain::Names];
const LAUNCHES: &[Domain] = &[Domain::Submissions, Domain::Calls];
const KERNEL_LAUNCHES: &[Domain] = &[Domain::Submissions, Domain::Names, Domain::Calls];
const QUEUES: &[Domain] = &[Domain::Submissions, Domain::Queues];
const COPIES: &[Domain] = &[Domain::Copies];
const CALLS: &[Domain] = &[Domain::Calls];
const IOCTLS: &[Domain] = &[Domain::Ioctls];
const LAYERS: &[Domain] = &[Domain::Calls, Domain::Ioctls];

const fn count(name: &'static str, domains: &'static [Domain], meaning: &'static str) -> Figure {
    figure(name, Kind::Count, domains, meaning)
}

/// A sum of times, which is 0 without calls.
const fn sum(name: &'static str, domains: &'static [Domain], meaning: &'static str) -> Figure {
    Figure {
        zero: true,
        ..figure(name, Kind::Time, domains, meaning)
    }
}

/// A time of single calls, which has no value without calls.
const fn time(name: &'static str, domains: &'static [Domain], meaning: &'static str) -> Figure {
    figure(name, Kind::Time, domains, meaning)
}

const fn figure(name: &'static str, kind: Kind, domains: &'static [Domain], meaning: &'static str) -> Figure {
    Figure {
        name,
        kind,
        meaning,
        domains,
        zero: kind.is_exact(),
    }
}

const TOTAL: &[Figure] = &[
    count("dispatches", SUBMISSIONS, "kernel dispatches"),
    count("dispatches.internal", QUEUES, "dispatches by runtimes for themselves"),
    count("doorbells", SUBMISSIONS, "doorbells of AQL queues"),
    count("barriers", SUBMISSIONS, "packets that only wait"),
    count("packets", SUBMISSIONS, "packets that are no dispatches"),
    count("copies", COPIES, "SDMA submissions"),
    figure("copies.bytes", Kind::Bytes, COPIES, "bytes that these move or fill"),
    count(
        "ring-jobs",
        &[Domain::Rings],
        "jobs of traced processes on rings of the driver",
    ),
    count("ioctls", IOCTLS, "ioctls of KFD and DRM devices"),
    count("ioctls.failed", IOCTLS, "those that returned an error"),
    sum("ioctls.time", IOCTLS, "time in ioctls, summed over threads"),
    count("calls", CALLS, "calls of API functions"),
    count("calls.failed", CALLS, "those that returned an error"),
    count("queues", &[Domain::Queues], "user queues"),
    time(
        "launch.p50",
        LAUNCHES,
        "median time from the launch call to the doorbell",
    ),
    time("launch.p99", LAUNCHES, "99th percentile of that time"),
    time("wall", &[], "length of the recording"),
];

const KERNEL: &[Figure] = &[
    count("dispatches", KERNELS, "dispatches"),
    count("doorbell", KERNELS, "those by a doorbell"),
    count("ring", KERNELS, "those on a ring of the driver"),
    count("thunk", KERNELS, "those through the driver's library"),
    count("unseen", KERNELS, "those on an unknown path"),
    time(
        "launch.p50",
        KERNEL_LAUNCHES,
        "median time from the launch call to the doorbell",
    ),
    time("launch.p99", KERNEL_LAUNCHES, "99th percentile of that time"),
    time(
        "gpu.mean",
        KERNELS,
        "mean time on the GPU, of the dispatches with a time",
    ),
    sum("gpu.total", KERNELS, "time on the GPU, if every dispatch has a time"),
];

const PATH: &[Figure] = &[
    count("dispatches", SUBMISSIONS, "kernel dispatches"),
    count("copies", COPIES, "SDMA submissions"),
];

const QUEUE: &[Figure] = &[
    count("dispatches", QUEUES, "kernel dispatches"),
    count("packets", QUEUES, "packets, or SDMA submissions"),
    count("doorbells", QUEUES, "doorbells"),
    count("barriers", QUEUES, "packets that only wait"),
    count("streams", LAUNCHES, "streams that used it"),
    figure("depth", Kind::Level, QUEUES, "most packets that waited at a doorbell"),
];

const API: &[Figure] = &[
    count("calls", CALLS, "calls"),
    count("failed", CALLS, "calls that returned an error"),
    sum("total", CALLS, "time in the calls"),
    time("p50", CALLS, "median time in a call"),
    time("p99", CALLS, "99th percentile of that time"),
];

const IOCTL: &[Figure] = &[
    count("calls", IOCTLS, "calls"),
    count("failed", IOCTLS, "calls that returned an error"),
    sum("total", IOCTLS, "time in the calls"),
    time("p50", IOCTLS, "median time in a call"),
    time("p99", IOCTLS, "99th percentile of that time"),
];

const LAYER: &[Figure] = &[
    count("calls", LAYERS, "calls"),
    sum("total", LAYERS, "own time: without recorded calls and ioctls inside"),
    time("p50", LAYERS, "median own time of a call"),
    time("p99", LAYERS, "99th percentile of that time"),
];

const COPY: &[Figure] = &[
    count("copies", COPIES, "SDMA submissions, or copies by kernels"),
    figure("bytes", Kind::Bytes, COPIES, "bytes that they move or fill"),
];

impl Table {
    /// Returns the figures of its rows, in the order of a report. The first one says how often the row occurs.
    #[must_use]
    pub const fn figures(self) -> &'static [Figure] {
        match self {
            Self::Total => TOTAL,
            Self::Kernel => KERNEL,
            Self::Path => PATH,
            Self::Queue => QUEUE,
            Self::Api => API,
            Self::Ioctl => IOCTL,
            Self::Layer => LAYER,
            Self::Copy => COPY,
        }
    }

    /// Returns a figure by its name.
    #[must_use]
    pub fn figure(self, name: &str) -> Option<&'static Figure> {
        self.figures().iter().find(|figure| figure.name == name)
    }
}

#[cfg(test)]
mod tests {
    use tracer_common::record::LossSource;

    use super::*;
    use crate::{backend::Backend, losses};

    /// What this table of sources says agrees with the rules that everything else uses.
    #[test]
    fn losses_hide_at_least_what_other_rules_say() {
        let sources = losses::counted(Backend::Ebpf, |_| true).into_iter();
        for source in sources
            .chain(LossSource::ALL.map(LossSource::name))
            .chain(losses::counted(Backend::Perf, |_| true))
            .chain(losses::counted(Backend::Ftrace, |_| true))
            .chain(["store", "missed-other"])
        {
            let hidden = Domain::hidden_by(source);
            let hides = |domain| hidden.contains(&domain);
            assert!(
                !losses::hide_doorbells(source) || hides(Domain::Submissions),
                "{source}"
            );
            assert!(!losses::hide_ioctls(source) || hides(Domain::Ioctls), "{source}");
            assert!(!losses::hide_queue_calls(source) || hides(Domain::Queues), "{source}");
            assert!(!losses::hide_memory(source) || hides(Domain::Copies), "{source}");
        }
        assert_eq!(Domain::hidden_by("store"), Domain::ALL);
        assert_eq!(Domain::hidden_by("api-ring"), [Domain::Calls]);
        assert!(Domain::hidden_by("stack-ring").is_empty(), "stacks are not compared");
    }

    #[test]
    fn each_figure_is_found_by_its_name() {
        for table in Table::ALL {
            for figure in table.figures() {
                assert_eq!(table.figure(figure.name).unwrap().meaning, figure.meaning);
            }
        }
        assert!(Table::Total.figure("saxpy").is_none());
    }
}
