//! The comparison of a recording that began while the program ran, and perhaps stopped before it exited. The trace claims nothing
//! about earlier events, misses nothing from the first doorbell on, and what it has equals the truth.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::{Dispatch, Doorbell, Fact, Queue, QueueOrigin};

use crate::{compare, dispatcher::Submission, scenario::Run};

/// The counts of a comparison, to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Claimed dispatches.
    pub claimed: usize,
    /// Packets that were in rings but are not claimed.
    pub unclaimed: u64,
    /// Dispatches before or after the recording.
    pub outside: usize,
}

/// Compares the dispatcher's queues that were adopted. Panics at the first difference. `to_the_end`: whether the recording
/// continued until the program exited.
pub fn adopted(run: &Run, to_the_end: bool) -> Observed {
    compare::no_losses(run);
    adopted_of_machine(run, to_the_end)
}

/// Does the same for a recording of the whole machine, whose losses cover all processes.
pub fn adopted_of_machine(run: &Run, to_the_end: bool) -> Observed {
    let log = run.log.as_ref().expect("the dispatcher's log");
    let mut by_handle: BTreeMap<u64, Vec<&Submission>> = BTreeMap::new();
    for submission in &log.submissions {
        by_handle.entry(submission.queue).or_default().push(submission);
    }
    let mut observed = Observed::default();
    for fact in &run.facts {
        if let Fact::Queue(queue) = fact
            && queue.origin == QueueOrigin::Adopted
            && run.truth.queues.iter().any(|truth| truth.pid == queue.pid)
            && let Some(submissions) = by_handle.get(&queue.handle)
        {
            queue_observed(run, queue, submissions, to_the_end, &mut observed);
        }
    }
    observed
}

fn rows<'r, T>(run: &'r Run, of: impl Fn(&'r Fact) -> Option<T>) -> Vec<T> {
    run.facts.iter().filter_map(of).collect()
}

fn queue_observed(run: &Run, queue: &Queue, log: &[&Submission], to_the_end: bool, observed: &mut Observed) {
    let doorbells: Vec<&Doorbell> = rows(run, |fact| match fact {
        Fact::Doorbell(doorbell) if doorbell.queue == Some(queue.queue) => Some(doorbell),
        _ => None,
    });
    let dispatches: Vec<&Dispatch> = rows(run, |fact| match fact {
        Fact::Dispatch(dispatch) if dispatch.queue == queue.queue => Some(dispatch),
        _ => None,
    });
    let began = doorbells
        .iter()
        .map(|d| d.time_ns)
        .min()
        .expect("a queue that was found by a doorbell");
    let ended = if to_the_end {
        u64::MAX
    } else {
        doorbells.iter().map(|d| d.time_ns).max().expect("a doorbell")
    };

    // Every doorbell rung during the recording was seen, once, and no other. A doorbell that was being rung at the first or last
    // moment may be missing or present.
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    doorbells.iter().for_each(|d| *seen.entry(d.value).or_default() += 1);
    let values: BTreeSet<u64> = log.iter().map(|s| s.doorbell).collect();
    for (value, times) in &seen {
        assert!(
            values.contains(value) && *times == 1,
            "doorbell {value} was seen {times} times"
        );
    }
    let whole = |s: &&&Submission| s.reserve_ns > began && s.time_ns < ended;
    let expected: BTreeSet<u64> = log.iter().filter(whole).map(|s| s.doorbell).collect();
    for value in &expected {
        assert!(seen.contains_key(value), "doorbell {value} is missing in {queue:?}");
    }

    // The trace claims the packets that were reserved during the recording, and of the others those that a seen doorbell names.
    let claimed: BTreeSet<u64> = dispatches.iter().map(|d| d.index).collect();
    assert_eq!(claimed.len(), dispatches.len(), "a dispatch twice in {queue:?}");
    for submission in log {
        let index = submission.index;
        if whole(&submission) || seen.contains_key(&index) && submission.time_ns < ended {
            assert!(claimed.contains(&index), "dispatch {index} is missing in {queue:?}");
        }
        if claimed.contains(&index) {
            assert!(
                submission.time_ns > began,
                "dispatch {index} came before: {submission:?}"
            );
            assert!(
                seen.contains_key(&submission.doorbell),
                "no doorbell for {submission:?}"
            );
        }
    }

    let truth = run.truth_of(queue);
    assert_eq!(queue.kind, "compute-aql");
    assert_eq!((queue.ring_base, queue.ring_bytes), (truth.ring_base, truth.ring_size));
    assert_eq!(
        (queue.queue_id, queue.gpu_id),
        (Some(truth.queue_id), Some(truth.gpu_id))
    );
    let packets: BTreeMap<u64, _> = truth.packets.iter().map(|packet| (packet.index, packet)).collect();
    for dispatch in &dispatches {
        let packet = packets
            .get(&dispatch.index)
            .unwrap_or_else(|| panic!("never taken by the device: {dispatch:?}"));
        compare::dispatch_fields(packet, dispatch);
    }

    assert_eq!((queue.published, queue.unread), (claimed.len() as u64, 0), "{queue:?}");
    assert_eq!(queue.first_index, claimed.first().copied());
    assert_eq!(queue.last_index, claimed.last().copied());
    let unclaimed = queue.unclaimed.expect("an adopted queue says so");
    let span = queue
        .last_index
        .zip(queue.first_index)
        .map_or(0, |(last, first)| last - first + 1);
    assert!(span - queue.published <= unclaimed, "a gap: {queue:?}");
    if to_the_end {
        assert_eq!(queue.last_index, log.iter().map(|s| s.index).max());
    }
    observed.claimed += claimed.len();
    observed.unclaimed += unclaimed;
    observed.outside += log.len() - claimed.len();
}
