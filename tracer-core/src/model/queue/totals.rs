//! The row of a queue.

use tracer_common::aql::PACKET_LEN;
use tracer_common::kfd::QueueType;
use tracer_common::queue::{MAX_OWN_PACKETS, READ_DISPATCH_ID, WRITE_DISPATCH_ID};

use super::{End, Queue};
use crate::model::Position;
use crate::model::queue_origin::Creator;
use crate::tables::{self, QueueOrigin};

impl Queue {
    /// Returns the addresses of its indexes, while it exists.
    pub(in crate::model) fn position(&self) -> Option<Position> {
        if self.kind != QueueType::ComputeAql || self.end.is_some() {
            return None;
        }
        let handle = self.handle();
        let own = handle.wrapping_add(READ_DISPATCH_ID as u64);
        Some(Position {
            pid: self.pid,
            handle,
            read_pointer: self.created.map_or(own, |create| create.read_pointer),
            write_pointer: self.write_pointer,
            ring: self.ring_to_read(),
        })
    }

    /// Returns address and packets of the ring if only samples can show its packets, because no probe has seen a doorbell.
    fn ring_to_read(&self) -> Option<(u64, u32)> {
        let possible = self.ring_packets.is_power_of_two() && self.ring_packets <= MAX_OWN_PACKETS;
        let wanted = possible && self.doorbells == 0 && self.created.is_some();
        wanted.then_some((self.ring_base, self.ring_packets))
    }

    /// Returns the address of its `amd_queue_t`.
    fn handle(&self) -> u64 {
        self.write_pointer.wrapping_sub(WRITE_DISPATCH_ID as u64)
    }

    /// Returns whether the runtime created it for itself. `creators_known` is whether every call of `hsa_queue_create` is seen.
    fn internal(&self, creators_known: bool) -> Option<bool> {
        match self.creator {
            Creator::Program => Some(false),
            // Until something is submitted on the queue, the call that returns it to the program may not have returned yet.
            Creator::NotSeen if creators_known && self.kind == QueueType::ComputeAql && self.doorbells > 0 => {
                Some(true)
            }
            Creator::NotSeen | Creator::Unknown => None,
        }
    }

    /// Returns its numbers so far. `creators_known` has the same meaning as for `internal`.
    pub(in crate::model) fn totals(&self, creators_known: bool) -> tables::Queue {
        let create = self.created;
        let sample = self.last_sample();
        let published = sample.and_then(|sample| self.publish_log.end_at(sample.origin.time_ns));
        let read_index = sample.map(|sample| sample.read_index);
        let in_flight = published.zip(read_index).map(|(end, read)| end.saturating_sub(read));
        let oldest = read_index.filter(|_| in_flight.is_some_and(|packets| packets > 0));
        let adoption = self.adoption.as_ref();
        let claimed = adoption.map_or(0, |adoption| adoption.claimed);
        let (low, high) = (adoption.and_then(|adoption| adoption.bounds), self.span.bounds());
        let aql = self.kind == QueueType::ComputeAql;
        tables::Queue {
            queue: self.number,
            pid: self.pid,
            origin: if create.is_some() {
                QueueOrigin::Created
            } else {
                QueueOrigin::Adopted
            },
            queue_id: create.map_or(self.kfd.queue_id, |create| create.queue_id),
            gpu_id: self.gpu_id(),
            kind: self.kind.name().to_owned(),
            handle: if aql { self.handle() } else { 0 },
            write_pointer: self.write_pointer,
            ring_base: self.ring_base,
            ring_bytes: create.map_or(u64::from(self.ring_packets) * PACKET_LEN as u64, |c| {
                u64::from(c.ring_bytes)
            }),
            ring_memory: create.and_then(|create| create.ring_memory),
            doorbell_offset: create.and_then(|create| create.doorbell_offset),
            priority: create.map(|create| create.priority),
            internal: self.internal(creators_known),
            create_enter_ns: create.map(|create| create.enter_ns),
            created_ns: self.created_ns,
            destroyed_ns: self.end.map(End::time_ns),
            doorbells: self.doorbells,
            published: self
                .span
                .published()
                .saturating_add(claimed)
                .saturating_add(self.submissions),
            unclaimed: adoption.map(|adoption| adoption.unclaimed()),
            dispatches: self.dispatches,
            other_packets: self.other_packets,
            unread: self.unread,
            pending: self.reserved_end.max(self.write_seen).saturating_sub(self.span.end()),
            first_index: low.or(high).map(|(first, _)| first),
            last_index: high.or(low).map(|(_, last)| last),
            max_depth: self.max_depth,
            unseen: self.unseen_count().filter(|_| aql),
            watched_to_end: aql.then(|| self.watched_to_end()),
            looked_ns: sample.map(|sample| sample.after_ns),
            read_index,
            in_flight,
            oldest_ns: oldest.and_then(|index| self.publish_log.published_ns(index)),
            moved_ns: sample.and(self.samples.moved_ns),
        }
    }
}
