//! What happened on each queue.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::waits::Wait;
use crate::tables::{Dispatch, Doorbell, OtherPacket, PacketKind, Queue, Unread};

/// Number of queues that are distinguished.
const MAX_QUEUES: usize = 65_536;

/// What happened on a queue, beside the numbers of its row in `queues`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueUse {
    /// Number of the queue in the trace.
    pub queue: u32,
    /// Streams (`hipStream_t`) whose dispatches were seen on it.
    pub streams: BTreeSet<u64>,
    /// Packets that only wait: barriers on signals and on values.
    pub barriers: u64,
    /// Those among them whose signals the trace does not have, because an older version recorded it. The next five counts are
    /// without these.
    pub signals_unknown: u64,
    /// Those that wait for a packet of another queue, at least: the GPU had not taken that packet.
    pub waits_elsewhere: u64,
    /// The same, at most: the last packet with the signal was of another queue, and the GPU may have taken it before.
    pub waits_elsewhere_at_most: u64,
    /// Those that wait for a signal without a packet that is sure to complete it: of a copy, of the program, of another process.
    pub waits_unknown: u64,
    /// Those that wait only for packets before them in their own queue, as their barrier bit does already.
    pub waits_own: u64,
    /// Those without a signal that directly follow a barrier that waits for as much and has as wide fences.
    pub repeated: u64,
    /// Doorbells with a row of their own that published packets.
    pub doorbells: u64,
    /// Those among them that found every earlier packet taken by the GPU: nothing waited in the queue.
    pub found_empty: u64,
    /// Those among them that published several packets.
    pub batches: u64,
    /// Most packets that one of them published.
    pub largest_batch: u64,
    /// Published packets whose headers never became valid while the queue was watched.
    pub never_valid: u64,
    /// Doorbells with an index that was not reserved.
    pub beyond: u64,
    /// Packets that were reserved and not published when the queue ended, or the trace.
    pub pending: u64,
    /// Published packets that could not be read.
    pub unread: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    queues: BTreeMap<u32, QueueUse>,
}

impl Counter {
    pub(super) fn dispatch(&mut self, dispatch: &Dispatch) {
        if let (Some(stream), Some(queue)) = (dispatch.stream, self.of(dispatch.queue)) {
            queue.streams.insert(stream);
        }
    }

    pub(super) fn packet(&mut self, packet: &OtherPacket) {
        let waits = matches!(
            packet.kind,
            PacketKind::BarrierAnd | PacketKind::BarrierOr | PacketKind::VendorBarrierValue
        );
        let never_valid = packet.unread == Some(Unread::NeverValid);
        if let (true, Some(queue)) = (waits || never_valid, self.of(packet.queue)) {
            if waits && packet.waits_for.is_none() {
                queue.signals_unknown = queue.signals_unknown.saturating_add(packet.count);
            }
            let counter = if waits {
                &mut queue.barriers
            } else {
                &mut queue.never_valid
            };
            *counter = counter.saturating_add(packet.count);
        }
    }

    /// Counts what a barrier of a queue waits for.
    pub(super) fn waits(&mut self, queue: u32, wait: Wait) {
        let Some(queue) = self.of(queue) else { return };
        match wait {
            Wait::OtherQueue => {
                queue.waits_elsewhere += 1;
                queue.waits_elsewhere_at_most += 1;
            }
            Wait::PerhapsOtherQueue => queue.waits_elsewhere_at_most += 1,
            Wait::Unknown => queue.waits_unknown += 1,
            Wait::OwnQueue => queue.waits_own += 1,
            Wait::Nothing => queue.repeated += 1,
            Wait::Before => {}
        }
    }

    pub(super) fn doorbell(&mut self, doorbell: &Doorbell) {
        let Some(queue) = doorbell.queue.and_then(|queue| self.of(queue)) else {
            return;
        };
        queue.beyond += u64::from(doorbell.beyond);
        if let Some(indexes) = doorbell.indexes() {
            queue.doorbells += 1;
            queue.batches += u64::from(doorbell.published > 1);
            queue.largest_batch = queue.largest_batch.max(doorbell.published);
            queue.found_empty += u64::from(doorbell.read_index >= *indexes.start());
        }
    }

    pub(super) fn queue(&mut self, row: &Queue) {
        if let Some(queue) = self.of(row.queue) {
            queue.pending = row.pending;
            queue.unread = row.unread;
        }
    }

    pub(super) fn finish(self) -> Vec<QueueUse> {
        self.queues.into_values().collect()
    }

    fn of(&mut self, queue: u32) -> Option<&mut QueueUse> {
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&queue) {
            return None;
        }
        let new = || QueueUse {
            queue,
            ..QueueUse::default()
        };
        Some(self.queues.entry(queue).or_insert_with(new))
    }
}
