//! Which packets a doorbell makes worth reading, if it is read after the fact. The counterpart of the walk in the eBPF programs
//! (`tracer-ebpf/src/doorbell/walk.rs`), by the same rules.

use tracer_common::aql::{Packet, packet_type};

/// The indexes of a queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// The read index.
    pub read: u64,
    /// The write index.
    pub write: u64,
}

impl Indexes {
    /// Returns one past the highest index whose producer may write now: one that reserved beyond the ring waits.
    #[must_use]
    pub fn limit(self, size: u32) -> u64 {
        self.write.min(self.read.wrapping_add(u64::from(size)))
    }
}

/// What was read of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Every lower index was captured, or cannot be captured any more.
    pub low: u64,
    /// One past the highest index that was published.
    pub max: u64,
}

/// Packets that are worth reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first index.
    pub first: u64,
    /// One past the last one.
    pub end: u64,
    /// A doorbell's value names an index that no producer has reserved.
    pub beyond: bool,
}

impl Extent {
    /// Returns what is known of a queue that was not seen before: nothing before this moment is claimed. The packets that the GPU
    /// has not consumed yet can be read.
    #[must_use]
    pub fn adopted(value: u64, now: Indexes) -> Self {
        let low = now.read.min(value);
        Self { low, max: low }
    }

    /// Returns the packets that doorbells up to a value make worth reading in a ring of `size` packets.
    #[must_use]
    pub fn range(self, value: u64, size: u32, now: Indexes) -> Range {
        let size = u64::from(size);
        // A slot is reused only after its packet was consumed, and by a producer that reserved it.
        let oldest = now.write.saturating_sub(size).min(now.read);
        let first = self.low.max(oldest);
        let mut end = value.saturating_add(1);
        let beyond = end > first && end - first > size;
        if beyond {
            end = now.write;
        }
        let end = end.max(self.max).max(first).min(first.saturating_add(size));
        Range { first, end, beyond }
    }

    /// Notes that the packets from `first` on were read: `before` and `limit` are the read index before that, and
    /// [`Indexes::limit`] after it.
    pub fn note(&mut self, first: u64, packets: &[Packet], before: u64, limit: u64, size: u32) {
        self.max = self.max.max(first.saturating_add(packets.len() as u64));
        // In this order, so that no index after the last packet is computed.
        for (packet, index) in packets.iter().zip(first..) {
            let is_next = index <= self.low;
            if !is_next || !is_final(index, packet.bytes[0], before, limit, u64::from(size)) {
                return;
            }
            self.low = self.low.max(index.saturating_add(1));
        }
    }
}

/// Returns whether a slot's content is final for packet `index`: a valid header, a consumed packet, or a slot that already belongs
/// to a later packet.
fn is_final(index: u64, first_byte: u8, read_index: u64, limit: u64, size: u64) -> bool {
    let invalid = first_byte == packet_type::INVALID;
    let reused = limit > index.saturating_add(size);
    let own = read_index.saturating_add(size) > index;
    reused || (own && !invalid) || (invalid && index < read_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(read: u64, write: u64) -> Indexes {
        Indexes { read, write }
    }

    fn range(first: u64, end: u64, beyond: bool) -> Range {
        Range { first, end, beyond }
    }

    #[test]
    fn a_doorbell_is_worth_what_was_not_read_before() {
        let seen = Extent { low: 5, max: 5 };
        assert_eq!(seen.range(7, 64, at(8, 8)), range(5, 8, false));
        // A doorbell that comes late publishes nothing new; the slot that was not final is read again.
        let seen = Extent { low: 5, max: 9 };
        assert_eq!(seen.range(6, 64, at(3, 9)), range(5, 9, false));
        // The ring has gone around: what is not there any more is left out.
        assert_eq!(seen.range(99, 64, at(100, 100)), range(36, 100, false));
        // No producer has reserved index 1000.
        assert_eq!(seen.range(1000, 64, at(9, 12)), range(5, 12, true));
        assert_eq!(seen.range(u64::MAX, 64, at(9, 12)), range(5, 12, true));
        // A producer that has reserved beyond the ring has written nothing there.
        assert_eq!(seen.range(70, 64, at(6, 200)), range(6, 70, true));
    }

    #[test]
    fn a_queue_that_was_not_seen_begins_where_the_gpu_reads() {
        assert_eq!(Extent::adopted(9, at(4, 10)), Extent { low: 4, max: 4 });
        // The GPU was faster than the reader: the doorbell's own packet is still worth a look.
        assert_eq!(
            Extent::adopted(9, at(10, 10)).range(9, 64, at(10, 10)),
            range(9, 10, false)
        );
    }

    #[test]
    fn only_final_slots_are_not_read_again() {
        let packet = |kind: u8| {
            let mut packet = Packet::ZERO;
            packet.bytes[0] = kind;
            packet
        };
        let (valid, invalid) = (packet(packet_type::KERNEL_DISPATCH), packet(packet_type::INVALID));
        let after = |packets: &[Packet], read| {
            let mut extent = Extent { low: 10, max: 10 };
            extent.note(10, packets, read, 14, 64);
            extent
        };
        assert_eq!(after(&[valid, invalid, valid], 10), Extent { low: 11, max: 13 });
        assert_eq!(after(&[valid, invalid, valid], 12), Extent { low: 13, max: 13 });
        assert_eq!(after(&[invalid, valid, valid], 10).low, 10);
    }
}
