//! Reads the packets that the GPU took from queues whose doorbells no probe sees, before their slots are used again.

use tracer_common::aql::{PACKET_LEN, Packet};
use tracer_core::{event::Origin, event::Packets, model::Position};

use super::memory::Scattered;
use crate::confined::Piece;

/// Packets read by one request.
const AT_ONCE: u64 = 512;
/// Requests for one queue in one pass. At 2 ms a pass, this suffices for two million packets per second.
const REQUESTS: u64 = 8;
const WORD: u32 = 8;

/// Consecutive slots of a ring, all below the read index.
#[derive(Clone, Debug)]
pub struct Taken {
    origin: Origin,
    handle: u64,
    ring_packets: u32,
    read_index: u64,
    write_index: u64,
    first: u64,
    packets: Vec<Packet>,
}

impl Taken {
    /// Returns the packets for the model.
    #[must_use]
    pub fn packets(&self) -> Packets<'_> {
        let indexes = (self.read_index, self.write_index);
        Packets::of_slots(
            self.origin,
            self.handle,
            self.ring_packets,
            indexes,
            self.first,
            &self.packets,
        )
    }
}

/// Reads the slots from index `from` to the read index `to` that are still in the ring; `seen` receives them, and returns whether it
/// takes more. Returns the first index that is still to be read, and the number of requests.
pub fn read(
    memory: &mut Scattered,
    queue: &Position,
    (from, to): (u64, u64),
    mut seen: impl FnMut(Taken) -> bool,
) -> (u64, u32) {
    let Some((base, ring_packets)) = queue.ring else {
        return (to, 0);
    };
    let size = u64::from(ring_packets);
    let (mut next, mut requests) = (from.max(to.saturating_sub(size)), 0);
    while next < to && u64::from(requests) < REQUESTS {
        let slot = next & (size - 1);
        let count = (to - next).min(AT_ONCE).min(size - slot);
        let slots = Piece {
            address: base.wrapping_add(slot * PACKET_LEN as u64),
            len: count as u32 * PACKET_LEN as u32,
        };
        let index = |address| Piece { address, len: WORD };
        // The read index of the sample precedes the slots. The write index follows them, and says which slots were reused.
        let pieces = vec![slots, index(queue.read_pointer), index(queue.write_pointer)];
        requests += 1;
        let Some(read) = memory.read(queue.pid, pieces) else {
            break;
        };
        if !read.there.iter().all(|there| *there) {
            // The queue is gone, or its ring cannot be read.
            return (to, requests);
        }
        let (slots, indexes) = read.bytes.split_at(count as usize * PACKET_LEN);
        let [read_now, write_now] = [0, 8].map(|at| {
            let bytes = indexes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_ne_bytes)
        });
        let packets = slots.as_chunks::<PACKET_LEN>().0.iter();
        let taken = Taken {
            origin: Origin {
                time_ns: read.time_ns,
                pid: queue.pid,
                tid: 0,
            },
            handle: queue.handle,
            ring_packets,
            read_index: to,
            // A producer that reserved beyond the ring waits.
            write_index: write_now.min(read_now.saturating_add(size)),
            first: next,
            packets: packets.map(|bytes| Packet { bytes: *bytes }).collect(),
        };
        if !seen(taken) {
            break;
        }
        next += count;
    }
    (next, requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confined::Readers;

    /// A ring of four packets, of which the sixth and later ones are still there.
    #[test]
    fn the_slots_that_are_still_in_the_ring_are_read() {
        let mut ring = [Packet::ZERO; 4];
        let indexes = [7_u64, 8];
        for index in 4..8_u8 {
            ring[usize::from(index) % 4].bytes[8] = index;
        }
        let at = |words: &u64| std::ptr::from_ref(words).expose_provenance() as u64;
        let queue = Position {
            pid: std::process::id(),
            handle: 1,
            read_pointer: at(&indexes[0]),
            write_pointer: at(&indexes[1]),
            ring: Some((ring.as_ptr().expose_provenance() as u64, 4)),
        };
        // SAFETY: the other thread of a test program only waits, and the C library's own locks survive a fork.
        let mut memory = Scattered::new(unsafe { Readers::start() }.unwrap());
        let mut seen = Vec::new();
        let (next, requests) = read(&mut memory, &queue, (0, 7), |taken| {
            let packets = taken.packets();
            assert_eq!((packets.read_index, packets.write_index, packets.handle), (7, 8, 1));
            seen.extend((packets.first..).zip(packets.packets.iter().map(|packet| packet.bytes[8])));
            true
        });
        // The run that crosses the ring's end takes two requests.
        assert_eq!((next, requests), (7, 2));
        assert_eq!(seen, [(3, 7), (4, 4), (5, 5), (6, 6)]);
    }
}
