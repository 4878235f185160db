//! What happened on each queue.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::tables::{Dispatch, Doorbell, OtherPacket, PacketKind, Queue};

/// Number of queues that are distinguished.
const MAX_QUEUES: usize = 65_536;

/// What happened on a queue, beside the numbers of its row in `queues`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueUse {
    /// Number of the queue in the trace.
    pub queue: u32,
    /// Streams (`hipStream_t`) whose dispatches were seen on it.
    pub streams: BTreeSet<u64>,
    /// Packets that only wait: barriers on signals and on values.
    pub barriers: u64,
    /// Doorbells with a row of their own that published packets.
    pub doorbells: u64,
    /// Those among them that found every earlier packet taken by the GPU: nothing waited in the queue.
    pub found_empty: u64,
    /// Those among them that published several packets.
    pub batches: u64,
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
        if let (true, Some(queue)) = (waits, self.of(packet.queue)) {
            queue.barriers = queue.barriers.saturating_add(packet.count);
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
