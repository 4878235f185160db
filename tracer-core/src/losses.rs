//! What the sources of losses mean.

use tracer_common::record::LossSource;

/// Whether events of this source, lost, can hide that a doorbell was rung: then nobody can say that none was.
///
/// `missed-other` are doorbell programs that the kernel did not run; the other missed ones, and holds, are processes that
/// may have run before their probes were in.
#[must_use]
pub fn hide_doorbells(source: &str) -> bool {
    const SOURCES: [LossSource; 6] = [
        LossSource::DoorbellRing,
        LossSource::TaskRing,
        LossSource::HoldRing,
        LossSource::TracedMap,
        LossSource::HoldFailed,
        LossSource::SignalUnread,
    ];
    let missed = [
        "missed-other",
        "missed-mapping",
        "missed-process",
        "undecoded",
        "model-queues",
    ];
    missed.contains(&source) || SOURCES.iter().any(|lost| lost.name() == source)
}
