//! Meaning of the sources of losses.

use tracer_common::record::LossSource;

use crate::{backend::Backend, family::Family};

/// Returns the sources whose losses a backend counts while probes of some families are attached. `has` returns whether probes of a
/// family are attached.
///
/// For any other source, a count of 0 would be a guess. This is also true of the `missed-` sources: kernels before 6.7 do not
/// report everything that they did not run.
#[must_use]
pub fn counted(backend: Backend, has: impl Fn(Family) -> bool) -> Vec<&'static str> {
    let mut all: Vec<&str> = match backend {
        Backend::Perf => vec![PERF_RING, LossSource::HoldFailed.name()],
        Backend::Ftrace => vec![FTRACE_RING, LossSource::HoldFailed.name()],
        Backend::Ebpf | Backend::Other => {
            let of_programs = LossSource::ALL
                .into_iter()
                .filter(|&source| families(source).iter().any(|&family| has(family)));
            of_programs.map(LossSource::name).collect()
        }
    };
    let of_model = [
        (JOB_LIMIT, Family::Ring),
        (KERNEL_LIMIT, Family::CodeObject),
        (LIST_UNREAD, Family::CodeObject),
        (PROXY_UNREAD, Family::Proxy),
        (PAUSE_LIMIT, Family::Mapping),
    ];
    let of_model = of_model.into_iter().filter(|&(_, family)| has(family));
    all.extend(of_model.map(|(source, _)| source));
    // The decoder sees every record, and every decoded event belongs to a queue or to none. Every mapped file is opened.
    all.extend([
        UNDECODED,
        QUEUE_LIMIT,
        LIBRARY_UNOPENED,
        LIBRARY_UNTRACED,
        TOPOLOGY_UNREAD,
    ]);
    all
}

/// Source of losses for events of queues beyond the limit of the model.
pub(crate) const QUEUE_LIMIT: &str = "model-queues";

/// Source of losses for kernels of code objects beyond the limit of the model.
pub(crate) const KERNEL_LIMIT: &str = "model-kernels";

/// Source of losses for lists of code objects that could not be read.
pub(crate) const LIST_UNREAD: &str = "code-object-list";

/// Source of losses for jobs beyond the limit of the model.
pub(crate) const JOB_LIMIT: &str = "model-ring-jobs";

/// Source of losses for requests of a proxy that could not be read.
pub(crate) const PROXY_UNREAD: &str = "proxy-unread";

/// Source of losses for libraries, or lists of a process's mappings, that could not be opened. They may be HSA runtimes. tracer
/// tries them again, and does not see what is submitted until then.
pub const LIBRARY_UNOPENED: &str = "library-unopened";

/// Source of losses for files that look like HSA runtimes but have an unknown form.
pub const LIBRARY_UNTRACED: &str = "library-untraced";

/// Source of losses for processes that use the KFD, and whose KFD topology could not be read: their GPUs are unknown.
pub const TOPOLOGY_UNREAD: &str = "topology-unread";

/// Sources of losses for probes that could not be attached to a library, by family.
const UNATTACHED: [(Family, &str); 8] = [
    (Family::Api, "unattached-api"),
    (Family::CodeObject, "unattached-code-object"),
    (Family::Doorbell, "unattached-doorbell"),
    (Family::HsaQueue, "unattached-hsa-queue"),
    (Family::Mapping, "unattached-mapping"),
    (Family::Proxy, "unattached-proxy"),
    (Family::Reserve, "unattached-reserve"),
    (Family::Sdma, "unattached-sdma"),
];

/// Returns the source of losses for probes of a family that could not be attached to a library.
#[must_use]
pub fn unattached(family: Family) -> &'static str {
    let found = UNATTACHED.iter().find(|(name, _)| *name == family);
    found.map_or("unattached-other", |(_, source)| source)
}

/// Sources of losses for programs that the kernel did not run, by family.
const MISSED: [(Family, &str); 14] = [
    (Family::Api, "missed-api"),
    (Family::CodeObject, "missed-code-object"),
    (Family::Doorbell, MISSED_DOORBELL),
    (Family::Driver, "missed-driver"),
    (Family::DriverEvent, "missed-driver-event"),
    (Family::HsaQueue, "missed-hsa-queue"),
    (Family::Ioctl, "missed-ioctl"),
    (Family::Mapping, "missed-mapping"),
    (Family::Process, "missed-process"),
    (Family::Progress, "missed-progress"),
    (Family::Reserve, "missed-reserve"),
    (Family::Ring, "missed-ring"),
    (Family::Sdma, "missed-sdma"),
    (Family::Stops, "missed-stops"),
];

/// Source of losses for doorbell programs that the kernel did not run.
const MISSED_DOORBELL: &str = "missed-doorbell";

/// Source of losses for programs without a source of their own. In traces of older versions, doorbell programs are among them.
const MISSED_OTHER: &str = "missed-other";

/// Returns the source of losses for programs of a family that the kernel did not run.
#[must_use]
pub fn missed(family: Family) -> &'static str {
    let found = MISSED.iter().find(|(name, _)| *name == family);
    found.map_or(MISSED_OTHER, |(_, source)| source)
}

/// Source of losses for records that this version cannot decode.
pub const UNDECODED: &str = "undecoded";

/// Source of losses for perf records that had no room: samples of any probe, and forks and exits of processes.
pub const PERF_RING: &str = "perf-ring";

/// Source of losses for records of ftrace that had no room: of any probe, and of forks and exits of processes.
pub const FTRACE_RING: &str = "ftrace-ring";

/// Source of losses for events that the tool whose text was imported lost itself.
pub const IMPORT_LOST: &str = "import-lost";

/// Source of losses for pauses that reached their limit and ended before the process's probes were attached.
pub const PAUSE_LIMIT: &str = "pause-limit";

/// Returns the families of the probes whose programs count losses of this source.
const fn families(source: LossSource) -> &'static [Family] {
    match source {
        LossSource::DoorbellRing | LossSource::PacketsRing | LossSource::SignalUnread => &[Family::Doorbell],
        LossSource::SdmaRing => &[Family::Sdma],
        LossSource::QueueMap => &[Family::Doorbell, Family::Sdma, Family::Ioctl],
        LossSource::IoctlRing | LossSource::IoctlMap => &[Family::Ioctl],
        LossSource::ReserveRing => &[Family::Reserve],
        LossSource::TaskRing | LossSource::TracedMap => &[Family::Process],
        LossSource::HoldRing | LossSource::HoldFailed => &[Family::Mapping],
        LossSource::RingJobRing => &[Family::Ring],
        LossSource::DriverRing | LossSource::DriverMap => &[Family::Driver],
        LossSource::DriverEventRing => &[Family::DriverEvent],
        LossSource::CodeObjectRing => &[Family::CodeObject],
        LossSource::ProgressRing => &[Family::Progress],
        LossSource::HsaQueueRing | LossSource::ProxyUnknown => &[Family::HsaQueue],
        LossSource::ApiRing | LossSource::ApiMap | LossSource::ApiDepth => &[Family::Api],
        // Stacks are taken only if the user asks: the probes alone do not say so.
        LossSource::StackRing | LossSource::StackLimit => &[],
    }
}

/// Returns whether lost events of this source can hide that a doorbell was rung. In that case tracer cannot say that none was rung.
///
/// `missed-doorbell` stands for doorbell programs that the kernel did not run; traces of older versions count them as
/// `missed-other`. Other `missed-` sources, and those of failed pauses, stand for processes that may have run before their probes were
/// attached.
#[must_use]
pub fn hide_doorbells(source: &str) -> bool {
    let doorbells = [
        LossSource::DoorbellRing.name(),
        LossSource::SignalUnread.name(),
        QUEUE_LIMIT,
        MISSED_DOORBELL,
        MISSED_OTHER,
        "unattached-doorbell",
        // Without the mapping probe, tracer does not find the doorbell functions of last resort.
        "unattached-mapping",
    ];
    doorbells.contains(&source) || hide_processes(source)
}

/// Returns whether lost events of this source can hide ioctls of traced processes.
#[must_use]
pub fn hide_ioctls(source: &str) -> bool {
    let ioctls = [
        LossSource::IoctlRing.name(),
        LossSource::IoctlMap.name(),
        "missed-ioctl",
    ];
    ioctls.contains(&source) || hide_processes(source)
}

/// Returns whether lost events of this source can hide that a program created a queue. In that case tracer cannot say that the
/// program's runtime created it.
#[must_use]
pub fn hide_queue_calls(source: &str) -> bool {
    let calls = [
        LossSource::HsaQueueRing.name(),
        "missed-hsa-queue",
        "unattached-hsa-queue",
    ];
    calls.contains(&source) || hide_processes(source)
}

/// Returns whether lost events of this source can hide an ioctl, and so an allocation of memory.
#[must_use]
pub(crate) fn hide_memory(source: &str) -> bool {
    let ioctls = [
        LossSource::IoctlRing.name(),
        LossSource::IoctlMap.name(),
        "missed-ioctl",
        "missed-other",
    ];
    ioctls.contains(&source) || hide_processes(source)
}

/// Returns whether lost events of this source are events of tools' proxies, or concern whether there are proxies.
#[must_use]
pub fn is_of_proxies(source: &str) -> bool {
    [LossSource::ProxyUnknown.name(), PROXY_UNREAD, "unattached-proxy"].contains(&source)
}

/// Returns whether lost events of this source can hide requests of a program to a tool's proxies.
#[must_use]
pub fn hide_requests(source: &str) -> bool {
    is_of_proxies(source) || hide_doorbells(source) || hide_queue_calls(source)
}

/// Returns whether lost events of this source can hide everything that the probes in a process's libraries report.
fn hide_processes(source: &str) -> bool {
    let sources = [
        LossSource::TaskRing.name(),
        LossSource::HoldRing.name(),
        LossSource::TracedMap.name(),
        LossSource::HoldFailed.name(),
        "missed-mapping",
        "missed-process",
        UNDECODED,
        PERF_RING,
        FTRACE_RING,
        PAUSE_LIMIT,
        LIBRARY_UNOPENED,
        LIBRARY_UNTRACED,
    ];
    sources.contains(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_watched_is_not_counted() {
        assert_eq!(
            counted(Backend::Ebpf, |_| false),
            [
                UNDECODED,
                QUEUE_LIMIT,
                LIBRARY_UNOPENED,
                LIBRARY_UNTRACED,
                TOPOLOGY_UNREAD
            ]
        );
        let some = counted(Backend::Ebpf, |family| {
            [Family::Ioctl, Family::CodeObject].contains(&family)
        });
        let expected = [
            "ioctl-ring",
            "queue-map",
            "ioctl-map",
            "code-object-ring",
            "model-kernels",
            "code-object-list",
            "undecoded",
            "model-queues",
            "library-unopened",
            "library-untraced",
            "topology-unread",
        ];
        assert_eq!(some, expected);
        assert_eq!(counted(Backend::Ebpf, |_| true).len(), LossSource::ALL.len() - 2 + 10);
        // No program runs, so none of their counts is a 0.
        let by_perf = counted(Backend::Perf, |family| family == Family::Doorbell);
        assert_eq!(by_perf[..3], [PERF_RING, "hold-failed", UNDECODED]);
        let by_ftrace = counted(Backend::Ftrace, |family| family == Family::Doorbell);
        assert_eq!(by_ftrace[..3], [FTRACE_RING, "hold-failed", UNDECODED]);
    }

    #[test]
    fn programs_that_were_not_run_hide_what_they_would_see() {
        for (family, source) in MISSED {
            assert_eq!(missed(family), source);
            assert_eq!(source, format!("missed-{}", family.to_string().replace('_', "-")));
        }
        assert!(hide_doorbells(missed(Family::Doorbell)) && !hide_doorbells(missed(Family::Reserve)));
        assert!(!hide_doorbells(missed(Family::Sdma)) && !hide_doorbells(missed(Family::CodeObject)));
        assert!(hide_ioctls(missed(Family::Ioctl)) && hide_queue_calls(missed(Family::HsaQueue)));
        assert!(hide_doorbells(missed(Family::Process)) && hide_doorbells(missed(Family::Mapping)));
        // Older versions had no source of its own for doorbells.
        assert!(hide_doorbells("missed-other"));
    }

    #[test]
    fn probes_that_are_missing_hide_what_they_would_see() {
        for (family, source) in UNATTACHED {
            assert_eq!(unattached(family), source);
        }
        assert!(hide_doorbells(unattached(Family::Doorbell)) && !hide_doorbells(unattached(Family::Api)));
        assert!(hide_queue_calls(unattached(Family::HsaQueue)) && hide_requests(unattached(Family::Proxy)));
        for source in [LIBRARY_UNOPENED, LIBRARY_UNTRACED, PERF_RING, FTRACE_RING] {
            assert!(hide_doorbells(source) && hide_queue_calls(source), "{source}");
        }
    }
}
