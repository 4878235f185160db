//! Checks whether the rows of a queue add up to the totals in the queue's own row.

use crate::tables::{Queue, QueueOrigin};
use crate::tally::{Tally, more};
use crate::verify::context::Context;
use crate::verify::finding::Offenders;
use crate::verify::verdict::Offender;
use crate::words::count;

/// The sums of a queue's rows.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueTally {
    /// The counts of the rows.
    pub(super) rows: Tally,
    /// One past the highest index that the GPU took without a doorbell.
    pub(super) unseen_end: u64,
    /// One past the highest index that a doorbell named.
    pub(super) named_end: u64,
    /// The lowest and the highest index that runs contain.
    pub(super) runs: Option<(u64, u64)>,
    /// Runs whose count differs from the length of their range.
    pub(super) broken_runs: u64,
}

impl QueueTally {
    /// Notes `count` indexes from `index` on, which the GPU took without a doorbell.
    pub(super) fn unseen(&mut self, index: u64, count: u64) {
        self.unseen_end = self.unseen_end.max(index.saturating_add(count));
    }

    /// Notes an index that a doorbell named.
    pub(super) fn named(&mut self, index: u64) {
        self.named_end = self.named_end.max(index.saturating_add(1));
    }

    /// Adds the indexes of a run. `whole` says whether the run has as many indexes as it counts.
    pub(super) fn run(&mut self, whole: bool, indexes: Option<(u64, u64)>) {
        self.broken_runs += u64::from(!whole);
        if let Some((first, last)) = indexes {
            let (lowest, highest) = self.runs.unwrap_or((first, last));
            self.runs = Some((lowest.min(first), highest.max(last)));
        }
    }

    /// Returns the number of unseen indexes that no later doorbell named either: they are above every other index.
    fn never_named(&self) -> u64 {
        self.rows.unseen().min(self.unseen_end.saturating_sub(self.named_end))
    }
}

/// The findings on all queues together.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) queues: u64,
    pub(super) published: u64,
    /// Queues of AQL packets whose creation was seen.
    pub(super) created: Offenders,
    pub(super) gaps: Offenders,
    /// Packets that are reserved, without a doorbell.
    pub(super) pending: Offenders,
    /// Queues whose creation was not seen although the recorder started first.
    pub(super) headless: Offenders,
    /// Queues that contain neither AQL packets nor copies.
    pub(super) opaque: Offenders,
    /// Packets that the GPU took and that no doorbell ever named.
    pub(super) unseen: Offenders,
    /// Packets that the GPU took before the doorbell that named them.
    pub(super) early: Offenders,
    /// Queues that were not watched to their destruction.
    pub(super) unwatched: Offenders,
}

impl Seen {
    /// Compares a queue with its rows.
    pub(super) fn queue(&mut self, queue: &Queue, tally: &QueueTally, context: &Context) {
        let offender = |what: String, index: Option<u64>, count: Option<u64>| Offender {
            what,
            queue: Some(queue.queue),
            index,
            count,
            pid: Some(queue.pid),
            gpu_id: queue.gpu_id,
            time_ns: Some(queue.created_ns),
            ..Offender::default()
        };
        if queue.is_sdma() {
            return;
        }
        let by_type = || offender(format!("a queue of type {}", queue.kind), None, None);
        if queue.is_opaque() {
            return self.opaque.add(by_type);
        }
        if queue.origin == QueueOrigin::Created {
            self.created.add(by_type);
        }
        self.queues += 1;
        more(&mut self.published, queue.published);
        if let Some(gap) = gap(queue, tally) {
            self.gaps
                .add(|| offender(gap, queue.first_index, Some(queue.published)));
        }
        let never = tally.never_named();
        if never > 0 {
            let what = "packets that the GPU took without a doorbell".to_owned();
            let index = tally.unseen_end.saturating_sub(never);
            self.unseen.add_many(never, || offender(what, Some(index), Some(never)));
        }
        let early = tally.rows.unseen().saturating_sub(never);
        if early > 0 {
            let what = "packets that the GPU took before their doorbell".to_owned();
            self.early
                .add_many(early, || offender(what, queue.first_index, Some(early)));
        }
        let watched = queue.watched_to_end == Some(true) && queue.unseen.is_some();
        if context.capabilities.unseen && !watched {
            let what = match queue.unseen {
                None => "a queue that tracer did not sample, or whose doorbells were lost",
                Some(_) => "a queue that tracer did not sample after its last use",
            };
            self.unwatched.add(|| offender(what.to_owned(), None, None));
        }
        if queue.pending > 0 && !(context.capabilities.unseen && watched) {
            let index = queue.last_index.map_or(0, |last| last.saturating_add(1));
            let what = "reserved packets without a doorbell".to_owned();
            self.pending
                .add_many(queue.pending, || offender(what, Some(index), Some(queue.pending)));
        }
        // A queue that begins with index 0 is complete, even if its creation was not seen.
        let whole = queue.first_index == Some(0) && queue.unclaimed.unwrap_or(0) == 0;
        let headless = queue.origin == QueueOrigin::Adopted && !whole;
        if headless && context.command_began_ns.is_some() {
            let what = "a queue whose creation tracer did not see".to_owned();
            self.headless.add(|| offender(what, queue.first_index, None));
        }
    }

    /// Adds a queue that has rows, but not a row of its own.
    pub(super) fn without_queue(&mut self, number: u32) {
        self.gaps.add(|| Offender {
            what: "rows of a queue that has no row of its own".to_owned(),
            queue: Some(number),
            ..Offender::default()
        });
    }
}

/// Returns how a queue and its rows disagree, if they do.
fn gap(queue: &Queue, tally: &QueueTally) -> Option<String> {
    let published = u128::from(queue.published);
    let span = match (queue.first_index, queue.last_index) {
        (Some(first), Some(last)) => u128::from(last.saturating_sub(first)) + 1,
        _ => 0,
    };
    let counted = u128::from(queue.dispatches) + u128::from(queue.other_packets) + u128::from(queue.unread);
    let created = queue.origin == QueueOrigin::Created;
    let rows = tally.rows.rows();
    if rows != queue.published || counted != published {
        return Some(format!("{published} indexes were published, and {rows} have rows"));
    }
    if tally.broken_runs > 0 {
        let runs = count(tally.broken_runs, "run");
        return Some(format!("{runs} do not count what they name"));
    }
    if let Some((lowest, highest)) = tally.runs
        && (queue.first_index.is_none_or(|first| lowest < first) || queue.last_index.is_none_or(|last| highest > last))
    {
        return Some(format!(
            "runs name the indexes from {lowest} to {highest}, which it does not have"
        ));
    }
    // The holes that an adopted queue reports are not gaps: the trace does not claim the packets that were in its ring before.
    let holes = u128::from(queue.unclaimed.unwrap_or(0));
    if span > published.saturating_add(holes) || span < published || (created && queue.first_index.unwrap_or(0) != 0) {
        return Some(format!("{published} indexes were published of a span of {span}"));
    }
    let reported = tally.rows.published.saturating_add(tally.rows.unseen());
    let missing = queue.published.saturating_sub(reported);
    (missing > 0).then(|| format!("tracer saw no doorbell for {}", count(missing, "index")))
}
