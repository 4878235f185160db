//! Doorbells, and the packets that were read at each.
//!
//! The event of a doorbell comes first. In the same thread follow that of the slots up to the last packet's and, for the first slots
//! of a ring, that of the slots before the ring's end, in any order. All of them become one walk of the model.

use std::collections::HashMap;

use tracer_common::aql::{PACKET_LEN, Packet};
use tracer_common::queue::{MAX_PACKETS, WRITE_DISPATCH_ID};
use tracer_core::event::{Doorbell, Event, Origin, Packets};
use tracer_core::script::PACKETS_PER_DOORBELL;

use super::{fields, number, numbers, origin};
use crate::event_line::EventLine;

/// The time after which no packets follow a doorbell, ns. A thread may lose its processor in between. The model keeps a queue that
/// has ended for longer.
const FOLLOWS_NS: u64 = 500_000_000;
/// Most doorbells that wait for their packets.
const MAX_OPEN: usize = 1 << 8;
/// Most queues. Those beyond it begin with each doorbell.
const MAX_QUEUES: usize = 1 << 16;

/// A doorbell whose packets may follow.
#[derive(Clone, Copy, Debug)]
struct Rung {
    origin: Origin,
    value: u64,
    /// `None` if the kernel could not read it.
    queue: Option<Queue>,
    /// Packet `value - N` at `N`.
    slots: [Option<Packet>; PACKETS_PER_DOORBELL],
}

/// A queue at a doorbell.
#[derive(Clone, Copy, Debug)]
struct Queue {
    handle: u64,
    ring_base: u64,
    ring_packets: u32,
    read_index: u64,
    write_index: u64,
    /// The indexes after the slots were read.
    write_after: u64,
    read_after: u64,
}

impl Queue {
    /// Returns the slot of an index.
    fn slot(&self, index: u64) -> u64 {
        index % u64::from(self.ring_packets)
    }
}

/// What is known of a queue.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Nothing is claimed of lower indexes.
    first: u64,
    write_index: u64,
    /// Whether its creation is in the text.
    is_created: bool,
}

/// The doorbells so far.
#[derive(Debug, Default)]
pub struct Doorbells {
    open: Vec<Rung>,
    known: HashMap<(u32, u64), Known>,
}

impl Doorbells {
    /// Takes a doorbell.
    ///
    /// # Errors
    /// Says what the line lacks.
    pub fn ring(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<(), String> {
        let [value, handle, ring_base, packets, write_index, read_index] =
            numbers(line.body, ["value", "queue", "base", "size", "write", "read"]);
        let queue = || {
            let ring_packets = u32::try_from(packets?).ok()?;
            let is_ring = ring_packets.is_power_of_two() && ring_packets <= MAX_PACKETS;
            is_ring.then_some(Queue {
                handle: handle?,
                ring_base: ring_base?,
                ring_packets,
                read_index: read_index?,
                write_index: write_index?,
                write_after: write_index?,
                read_after: read_index?,
            })
        };
        let rung = Rung {
            origin: origin(line)?,
            value: value.ok_or("it has no value")?,
            queue: queue(),
            slots: [None; PACKETS_PER_DOORBELL],
        };
        if self.open.len() >= MAX_OPEN {
            self.finish(out);
        }
        self.open.push(rung);
        Ok(())
    }

    /// Takes the slots of a doorbell: those up to its last packet's, or, if the ring has `wrapped` around, those before its end.
    ///
    /// # Errors
    /// Says what the line lacks.
    pub fn packets(
        &mut self,
        line: &EventLine<'_>,
        wrapped: bool,
        out: &mut impl FnMut(&Event<'_>),
    ) -> Result<(), String> {
        let [value, handle, write_after, read_after] = numbers(line.body, ["value", "queue", "write", "read"]);
        let value = value.ok_or("it has no value")?;
        let thread = |rung: &Rung| rung.origin.tid == line.tid && rung.value == value;
        let of_queue = |rung: &Rung| rung.queue.map(|queue| queue.handle) == handle;
        let Some(at) = self.open.iter().position(|rung| thread(rung) && of_queue(rung)) else {
            return Err("its doorbell is not in the text".to_owned());
        };
        let rung = &mut self.open[at];
        let Some(queue) = &mut rung.queue else { return Ok(()) };
        queue.write_after = queue.write_after.max(write_after.unwrap_or(0));
        queue.read_after = queue.read_after.max(read_after.unwrap_or(0));
        let in_first = queue.slot(value) + 1;
        for (before, packet) in read(line.body).into_iter().enumerate() {
            let is_here = (before as u64) < in_first;
            let is_there = before as u64 <= value && before < queue.ring_packets as usize;
            if is_here != wrapped && is_there {
                rung.slots[before] = rung.slots[before].or(packet);
            }
        }
        let there = value.saturating_add(1).min(u64::from(queue.ring_packets)) as usize;
        if rung.slots.iter().take(there).all(Option::is_some) {
            let rung = self.open.remove(at);
            self.hand_over(&rung, out);
        }
        Ok(())
    }

    /// Notes that a process created a queue with this write index, which begins at index 0.
    pub fn begin(&mut self, pid: u32, write_pointer: u64) {
        let handle = write_pointer.wrapping_sub(WRITE_DISPATCH_ID as u64);
        let begun = Known {
            first: 0,
            write_index: 0,
            is_created: true,
        };
        if self.known.len() < MAX_QUEUES || self.known.contains_key(&(pid, handle)) {
            self.known.insert((pid, handle), begun);
        }
    }

    /// Passes on the doorbells of a process, because one of its queues is about to end.
    pub fn flush(&mut self, pid: u32, out: &mut impl FnMut(&Event<'_>)) {
        self.hand_over_those(|rung| rung.origin.pid == pid, out);
    }

    /// Passes on the doorbells for which nothing follows this line. It may have `packets` of one.
    pub fn advance(&mut self, line: &EventLine<'_>, packets: bool, out: &mut impl FnMut(&Event<'_>)) {
        let is_late = |rung: &Rung| line.time_ns.saturating_sub(rung.origin.time_ns) > FOLLOWS_NS;
        let goes_on = |rung: &Rung| !packets && rung.origin.tid == line.tid;
        self.hand_over_those(|rung| is_late(rung) || goes_on(rung), out);
    }

    /// Passes on all doorbells.
    pub fn finish(&mut self, out: &mut impl FnMut(&Event<'_>)) {
        self.hand_over_those(|_| true, out);
    }

    /// Passes on these doorbells, in their order.
    fn hand_over_those(&mut self, is_it: impl Fn(&Rung) -> bool, out: &mut impl FnMut(&Event<'_>)) {
        while let Some(at) = self.open.iter().position(&is_it) {
            let rung = self.open.remove(at);
            self.hand_over(&rung, out);
        }
    }

    fn hand_over(&mut self, rung: &Rung, out: &mut impl FnMut(&Event<'_>)) {
        let mut doorbell = Doorbell::unreadable(rung.origin, rung.value);
        if let Some(queue) = rung.queue {
            let known = self.known(rung, &queue);
            let size = u64::from(queue.ring_packets);
            let oldest = queue.write_index.saturating_sub(size).min(queue.read_index);
            let end = rung.value.saturating_add(1);
            let beyond = end.saturating_sub(known.first.max(oldest)) > size;
            let read = rung.slots.iter().take_while(|slot| slot.is_some()).count() as u64;
            let first = end.saturating_sub(read).max(known.first);
            doorbell = Doorbell {
                handle: queue.handle,
                first: if beyond { queue.write_index } else { first },
                end: if beyond { queue.write_index } else { end },
                read_index: queue.read_index,
                write_index: queue.write_index,
                ring_base: queue.ring_base,
                ring_packets: queue.ring_packets,
                unreadable: read == 0,
                beyond,
                ..doorbell
            };
            if !beyond {
                pass_on(rung, &queue, first, out);
            }
        }
        out(&Event::Doorbell(doorbell));
    }

    /// Returns what is known of the queue, after this doorbell.
    fn known(&mut self, rung: &Rung, queue: &Queue) -> Known {
        let key = (rung.origin.pid, queue.handle);
        let found = self.known.get(&key).copied();
        // A write index never goes back: another queue has its place, whose creation is not in the text.
        let same = found.filter(|known| known.is_created || queue.write_index >= known.write_index);
        let known = Known {
            first: same.map_or_else(|| queue.read_index.min(rung.value), |known| known.first),
            write_index: queue.write_index,
            is_created: same.is_some_and(|known| known.is_created),
        };
        if found.is_some() || self.known.len() < MAX_QUEUES {
            self.known.insert(key, known);
        }
        known
    }
}

/// Passes on the packets from `first` on.
fn pass_on(rung: &Rung, queue: &Queue, first: u64, out: &mut impl FnMut(&Event<'_>)) {
    let mut packets = [Packet::ZERO; PACKETS_PER_DOORBELL];
    let count = rung.value.saturating_add(1).saturating_sub(first) as usize;
    let newest_first = rung.slots.iter().take(count).flatten();
    let mut filled = 0;
    for (slot, packet) in packets.iter_mut().zip(newest_first) {
        *slot = *packet;
        filled += 1;
    }
    packets[..filled].reverse();
    if filled > 0 {
        // A producer that has reserved beyond the ring waits.
        let limit = queue.read_after.saturating_add(u64::from(queue.ring_packets));
        let limit = limit.min(queue.write_after);
        let indexes = (queue.read_index, limit);
        let packets = &packets[..filled];
        out(&Event::Packets(Packets {
            value: rung.value,
            ..Packets::of_slots(rung.origin, queue.handle, queue.ring_packets, indexes, first, packets)
        }));
    }
}

/// Parses slots, the last one first. One of which a word could not be read is unread.
fn read(body: &str) -> [Option<Packet>; PACKETS_PER_DOORBELL] {
    const WORDS: usize = PACKET_LEN / 8;
    let mut slots = [[None; WORDS]; PACKETS_PER_DOORBELL];
    for (name, value) in fields(body) {
        let place = || {
            let (before, word) = name.strip_prefix('p')?.split_once('_')?;
            Some((before.parse::<usize>().ok()?, word.parse::<usize>().ok()?))
        };
        if let Some((before, word)) = place()
            && let Some(word) = slots.get_mut(before).and_then(|words| words.get_mut(word))
        {
            *word = number(value);
        }
    }
    slots.map(|words| {
        let mut packet = Packet::ZERO;
        for (bytes, word) in packet.bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word?.to_le_bytes());
        }
        Some(packet)
    })
}
