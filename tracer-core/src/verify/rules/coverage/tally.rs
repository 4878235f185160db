//! Whether the rows of a queue add up to what the queue says of itself.

use crate::fact::{Queue, QueueOrigin};
use crate::verify::context::Context;
use crate::verify::finding::Offenders;
use crate::verify::verdict::Offender;

/// What rows say of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Indexes that have a row: dispatches and other packets.
    pub(super) rows: u128,
    /// Indexes that doorbells account for.
    pub(super) credited: u128,
}

/// What the queues say together.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) queues: u64,
    pub(super) published: u64,
    pub(super) pending_indexes: u64,
    pub(super) gaps: Offenders,
    pub(super) pending: Offenders,
    /// Queues whose beginning was not seen although the recorder was there first.
    pub(super) headless: Offenders,
    /// Queues whose packets are not AQL, and no copies either.
    pub(super) opaque: Offenders,
}

impl Seen {
    /// Compares a queue with its rows.
    pub(super) fn queue(&mut self, queue: &Queue, tally: Tally, context: &Context) {
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
        if queue.kind.starts_with("sdma") {
            return;
        }
        if queue.kind != "compute-aql" {
            self.opaque
                .add(|| offender(format!("a queue of type {}", queue.kind), None, None));
            return;
        }
        self.queues += 1;
        self.published = self.published.saturating_add(queue.published);
        if let Some(gap) = gap(queue, tally) {
            self.gaps
                .add(|| offender(gap, queue.first_index, Some(queue.published)));
        }
        if queue.pending > 0 && !context.capabilities.unseen {
            self.pending_indexes = self.pending_indexes.saturating_add(queue.pending);
            let index = queue.last_index.map_or(0, |last| last.saturating_add(1));
            let what = "reserved packets without a doorbell".to_owned();
            self.pending.add(|| offender(what, Some(index), Some(queue.pending)));
        }
        // What begins with index 0 is whole, also where its making was not seen.
        let headless = queue.origin == QueueOrigin::Adopted && queue.first_index != Some(0);
        if headless && context.command_began_ns.is_some() {
            self.headless.add(|| {
                offender(
                    "a queue whose creation was not seen".to_owned(),
                    queue.first_index,
                    None,
                )
            });
        }
    }

    /// There are rows of a queue, but not the queue's own.
    pub(super) fn without_queue(&mut self, number: u32) {
        self.gaps.add(|| Offender {
            what: "rows of a queue that has no row of its own".to_owned(),
            queue: Some(number),
            ..Offender::default()
        });
    }
}

/// What is amiss between a queue and its rows, if anything.
fn gap(queue: &Queue, tally: Tally) -> Option<String> {
    let published = u128::from(queue.published);
    let span = match (queue.first_index, queue.last_index) {
        (Some(first), Some(last)) => u128::from(last.saturating_sub(first)) + 1,
        _ => 0,
    };
    let counted = u128::from(queue.dispatches) + u128::from(queue.other_packets) + u128::from(queue.unread);
    let created = queue.origin == QueueOrigin::Created;
    if tally.rows != published || counted != published {
        return Some(format!(
            "{published} indexes were published, and {} have rows",
            tally.rows
        ));
    }
    if span != published || (created && queue.first_index.unwrap_or(0) != 0) {
        return Some(format!("{published} indexes were published of a span of {span}"));
    }
    (tally.credited < published).then(|| {
        let missing = published - tally.credited;
        format!("for {missing} indexes no doorbell was seen")
    })
}
