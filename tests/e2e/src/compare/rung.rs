//! Doorbells, compared with the program's log of its doorbell stores.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::Fact;

use super::values;
use crate::scenario::Run;

/// Compares the doorbell values. The device may miss a value, but the program that made the runtime store it does not.
pub(super) fn own(run: &Run) {
    let Some(log) = &run.log else { return };
    let mut by_handle: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for queue in run.queues() {
        by_handle
            .entry(queue.handle)
            .or_default()
            .extend(values(run, queue.queue));
    }
    for submission in log.submissions.iter().filter(|submission| !submission.direct) {
        let seen = by_handle
            .get(&submission.queue)
            .is_some_and(|values| values.contains(&submission.doorbell));
        assert!(seen, "the doorbell of {submission:?} is missing");
    }
}

/// Checks that each of the program's queues has as many doorbells as the program rang through the runtime: none is missing, and
/// none is there twice.
pub(super) fn counts(run: &Run) {
    let mut traced: BTreeMap<u64, u64> = BTreeMap::new();
    for queue in run.queues().filter(|queue| queue.kind == "compute-aql") {
        *traced.entry(queue.handle).or_default() += queue.doorbells;
        let rows = |fact: &&Fact| matches!(fact, Fact::Doorbell(d) if d.queue == Some(queue.queue));
        assert_eq!(
            run.facts.iter().filter(rows).count() as u64,
            queue.doorbells,
            "{queue:?}"
        );
    }
    // Later queues reuse the addresses of destroyed ones.
    let mut rang: BTreeMap<u64, u64> = BTreeMap::new();
    for (handle, queue) in run.own_queues().unwrap_or_default() {
        let count = |what: &str| queue[what].as_u64().expect("a number");
        *rang.entry(handle).or_default() += count("doorbells") - count("direct_doorbells");
    }
    for (handle, rang) in rang {
        assert_eq!(
            traced.get(&handle).copied().unwrap_or(0),
            rang,
            "doorbells of the queue at {handle:#x}"
        );
    }
}
