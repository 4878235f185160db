//! What the sources of losses mean.

use tracer_common::record::LossSource;

use crate::model::{JOB_LIMIT, KERNEL_LIMIT, LIST_UNREAD, PROXY_UNREAD, QUEUE_LIMIT};

/// Sources whose losses are counted while probes of these families are in; `has` tells of a family whether one is.
///
/// Of a source that is not among them 0 would be no number but a guess. That holds for the `missed-` ones too: kernels
/// before 6.7 do not tell all that they did not run.
#[must_use]
pub fn counted(has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let of_programs = LossSource::ALL
        .into_iter()
        .filter(|&source| families(source).iter().any(|family| has(family)));
    let mut all: Vec<&str> = of_programs.map(LossSource::name).collect();
    let of_model = [
        (JOB_LIMIT, "ring"),
        (KERNEL_LIMIT, "code_object"),
        (LIST_UNREAD, "code_object"),
        (PROXY_UNREAD, "proxy"),
        (PAUSE_LIMIT, "mapping"),
    ];
    all.extend(
        of_model
            .iter()
            .filter(|(_, family)| has(family))
            .map(|(source, _)| source),
    );
    // Whatever comes in is decoded, and whatever is decoded belongs to a queue or to none. Whatever is mapped is opened.
    all.extend([UNDECODED, QUEUE_LIMIT, LIBRARY_UNOPENED, LIBRARY_UNTRACED]);
    all
}

/// Source of losses for libraries, or lists of what a process has mapped, that could not be opened: perhaps HSA runtimes. They
/// are tried again, and what is submitted until then is not seen.
pub const LIBRARY_UNOPENED: &str = "library-unopened";

/// Source of losses for files that look like HSA runtimes and can't be understood.
pub const LIBRARY_UNTRACED: &str = "library-untraced";

/// Losses of these sources are probes that could not be attached to a library, by family.
const UNATTACHED: [(&str, &str); 8] = [
    ("api", "unattached-api"),
    ("code_object", "unattached-code-object"),
    ("doorbell", "unattached-doorbell"),
    ("hsa_queue", "unattached-hsa-queue"),
    ("mapping", "unattached-mapping"),
    ("proxy", "unattached-proxy"),
    ("reserve", "unattached-reserve"),
    ("sdma", "unattached-sdma"),
];

/// The source of losses for probes of a family that could not be attached to a library.
#[must_use]
pub fn unattached(family: &str) -> &'static str {
    let found = UNATTACHED.iter().find(|(name, _)| *name == family);
    found.map_or("unattached-other", |(_, source)| source)
}

/// Source of losses for records that this version can't decode.
pub const UNDECODED: &str = "undecoded";

/// Source of losses for pauses that ended before the process's probes were in: they had reached their limit.
pub const PAUSE_LIMIT: &str = "pause-limit";

/// Families of the probes whose programs count there.
const fn families(source: LossSource) -> &'static [&'static str] {
    match source {
        LossSource::DoorbellRing | LossSource::PacketsRing | LossSource::SignalUnread => &["doorbell"],
        LossSource::SdmaRing => &["sdma"],
        LossSource::QueueMap => &["doorbell", "sdma", "ioctl"],
        LossSource::IoctlRing | LossSource::IoctlMap => &["ioctl"],
        LossSource::ReserveRing => &["reserve"],
        LossSource::TaskRing | LossSource::TracedMap => &["process"],
        LossSource::HoldRing | LossSource::HoldFailed => &["mapping"],
        LossSource::RingJobRing => &["ring"],
        LossSource::DriverRing | LossSource::DriverMap => &["driver"],
        LossSource::DriverEventRing => &["driver_event"],
        LossSource::CodeObjectRing => &["code_object"],
        LossSource::ProgressRing => &["progress"],
        LossSource::HsaQueueRing | LossSource::ProxyUnknown => &["hsa_queue"],
        LossSource::ApiRing | LossSource::ApiMap | LossSource::ApiDepth => &["api"],
    }
}

/// Whether events of this source, lost, can hide that a doorbell was rung: then nobody can say that none was.
///
/// `missed-other` are doorbell programs that the kernel did not run; the other missed ones, and holds, are processes that
/// may have run before their probes were in.
#[must_use]
pub fn hide_doorbells(source: &str) -> bool {
    const SOURCES: [LossSource; 2] = [LossSource::DoorbellRing, LossSource::SignalUnread];
    // Without the mapping probe, doorbell functions of the last resort are not found.
    const NAMES: [&str; 4] = ["missed-other", QUEUE_LIMIT, "unattached-doorbell", "unattached-mapping"];
    let doorbells = SOURCES.iter().any(|lost| lost.name() == source);
    doorbells || NAMES.contains(&source) || hide_processes(source)
}

/// Whether they can hide that a program made a queue: then nobody can say that its runtime did.
#[must_use]
pub fn hide_queue_calls(source: &str) -> bool {
    let calls = [
        LossSource::HsaQueueRing.name(),
        "missed-hsa-queue",
        "unattached-hsa-queue",
    ];
    calls.contains(&source) || hide_processes(source)
}

/// Whether what was lost is of tools' proxies, or whether there are any.
#[must_use]
pub fn is_of_proxies(source: &str) -> bool {
    [LossSource::ProxyUnknown.name(), PROXY_UNREAD, "unattached-proxy"].contains(&source)
}

/// Whether they can hide what a program asked of a tool's proxies.
#[must_use]
pub fn hide_requests(source: &str) -> bool {
    is_of_proxies(source) || hide_doorbells(source) || hide_queue_calls(source)
}

/// Whether they can hide whatever a process does by the probes in its libraries.
fn hide_processes(source: &str) -> bool {
    const SOURCES: [LossSource; 4] = [
        LossSource::TaskRing,
        LossSource::HoldRing,
        LossSource::TracedMap,
        LossSource::HoldFailed,
    ];
    let missed = [
        "missed-mapping",
        "missed-process",
        UNDECODED,
        PAUSE_LIMIT,
        LIBRARY_UNOPENED,
        LIBRARY_UNTRACED,
    ];
    missed.contains(&source) || SOURCES.iter().any(|lost| lost.name() == source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_watched_is_not_counted() {
        assert_eq!(
            counted(|_| false),
            [UNDECODED, QUEUE_LIMIT, LIBRARY_UNOPENED, LIBRARY_UNTRACED]
        );
        let some = counted(|family| ["ioctl", "code_object"].contains(&family));
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
        ];
        assert_eq!(some, expected);
        assert_eq!(counted(|_| true).len(), LossSource::ALL.len() + 9);
    }

    #[test]
    fn probes_that_are_missing_hide_what_they_would_see() {
        for (family, source) in UNATTACHED {
            assert_eq!(unattached(family), source);
        }
        assert!(hide_doorbells(unattached("doorbell")) && !hide_doorbells(unattached("api")));
        assert!(hide_queue_calls(unattached("hsa_queue")) && hide_requests(unattached("proxy")));
        for source in [LIBRARY_UNOPENED, LIBRARY_UNTRACED] {
            assert!(hide_doorbells(source) && hide_queue_calls(source), "{source}");
        }
    }
}
