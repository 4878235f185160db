//! What barriers wait for.
//!
//! A trace has the signals of barriers and of packets, and not who completes a signal. Runtimes use a signal again once the packet
//! has completed, also for copies, of which the trace has no signals. So the last packet with the signal is sure to be the one that a
//! barrier waits for only while the GPU has not taken that packet.

use tracer_common::aql::Packet;

use crate::tables::{OtherPacket, PacketKind};
use crate::tally::Map;

/// Signals that are distinguished. Runtimes reuse those of a pool.
const MAX_SIGNALS: usize = 1 << 20;
/// Waits for packets of one queue that are not decided.
const MAX_PENDING: usize = 1 << 16;

/// What a barrier waits for. The first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A packet of another queue, which the GPU had not taken.
    OtherQueue,
    /// A packet of another queue used the signal last. It is unknown whether the GPU had taken it.
    PerhapsOtherQueue,
    /// Something else: no packet is known that completes one of its signals.
    Unknown,
    /// Packets before it in its own queue, for which its barrier bit waits already.
    OwnQueue,
    /// It has no signal, nothing waits for it, and the packet just before it is a barrier that does as much.
    Nothing,
    /// What its header says: all packets before it.
    Before,
}

/// The place of a packet: its queue and its index.
type Place = (u32, u64);

/// Follows the completion signals of packets.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// The last packet with a signal, by process and signal.
    users: Map<(u32, u64), Place>,
    /// The highest read index of each queue that was seen.
    taken: Map<u32, u64>,
    /// Index and header of the last barrier of each queue.
    last: Map<u32, (u64, u16)>,
    /// Barriers of one moment: a packet of the same doorbell may come after them.
    open: Vec<OtherPacket>,
    /// Waits for packets of another queue, which its next read index decides: the queue of the barrier, and the index.
    pending: Map<u32, Vec<Place>>,
}

impl Counter {
    /// Notes the completion signal of a packet that was published at `time_ns`. Gives the queues and the waits of earlier barriers
    /// to `done`.
    pub(super) fn uses(
        &mut self,
        (pid, signal): (u32, u64),
        place: Place,
        time_ns: u64,
        done: &mut impl FnMut(u32, Wait),
    ) {
        if signal == 0 {
            return;
        }
        self.advance(time_ns, done);
        if self.users.len() < MAX_SIGNALS || self.users.contains_key(&(pid, signal)) {
            self.users.insert((pid, signal), place);
        }
    }

    /// Notes a packet that is no dispatch.
    pub(super) fn packet(&mut self, packet: &OtherPacket, done: &mut impl FnMut(u32, Wait)) {
        if packet.kind == PacketKind::Unread {
            return;
        }
        let of = (packet.pid, packet.completion_signal);
        self.uses(of, (packet.queue, packet.index), packet.time_ns, done);
        if packet.waits_for.is_some() {
            self.advance(packet.time_ns, done);
            self.open.push(packet.clone());
        }
    }

    /// Notes the read index of a queue.
    pub(super) fn read_index(&mut self, (queue, read_index): Place, time_ns: u64, done: &mut impl FnMut(u32, Wait)) {
        self.advance(time_ns, done);
        let taken = self.taken.entry(queue).or_default();
        *taken = read_index.max(*taken);
        for (waits, index) in self.pending.get_mut(&queue).into_iter().flat_map(|all| all.drain(..)) {
            let is_sure = read_index <= index;
            done(
                waits,
                if is_sure {
                    Wait::OtherQueue
                } else {
                    Wait::PerhapsOtherQueue
                },
            );
        }
    }

    /// Gives all waits that are left to `done`.
    pub(super) fn finish(&mut self, done: &mut impl FnMut(u32, Wait)) {
        self.advance(u64::MAX, done);
        for (waits, _) in self.pending.drain().flat_map(|(_, all)| all) {
            done(waits, Wait::PerhapsOtherQueue);
        }
    }

    /// Decides the barriers before a time.
    fn advance(&mut self, time_ns: u64, done: &mut impl FnMut(u32, Wait)) {
        if self.open.first().is_none_or(|barrier| barrier.time_ns >= time_ns) {
            return;
        }
        for barrier in std::mem::take(&mut self.open) {
            let wait = self.wait(&barrier);
            self.last.insert(barrier.queue, (barrier.index, barrier.header));
            match wait {
                Ok(wait) => done(barrier.queue, wait),
                Err((queue, index)) => {
                    let pending = self.pending.entry(queue).or_default();
                    match pending.len() {
                        MAX_PENDING => done(barrier.queue, Wait::PerhapsOtherQueue),
                        _ => pending.push((barrier.queue, index)),
                    }
                }
            }
        }
    }

    /// Returns what a barrier waits for, or the packet of another queue that it perhaps waits for.
    fn wait(&self, barrier: &OtherPacket) -> Result<Wait, Place> {
        let signals = barrier.waits_for.into_iter().flatten().filter(|&signal| signal != 0);
        // A packet that was taken may have completed, and its signal may have another use.
        let user = |signal| {
            let &(queue, index) = self.users.get(&(barrier.pid, signal))?;
            let taken = self.taken.get(&queue).copied().unwrap_or(0);
            (taken <= index).then_some((queue, index))
        };
        let users: Vec<Option<Place>> = signals.map(user).collect();
        if users.is_empty() {
            let repeats = barrier.completion_signal == 0 && self.repeats(barrier);
            return Ok(if repeats { Wait::Nothing } else { Wait::Before });
        }
        if let Some(&other) = users.iter().flatten().find(|(queue, _)| *queue != barrier.queue) {
            return Err(other);
        }
        let has_bit = Packet::with_header(barrier.header).barrier();
        Ok(if users.contains(&None) {
            Wait::Unknown
        } else if has_bit && users.iter().flatten().all(|(_, index)| *index < barrier.index) {
            Wait::OwnQueue
        } else {
            Wait::Before
        })
    }

    /// Returns whether the packet just before is a barrier that waits for as much, and has as wide fences.
    fn repeats(&self, barrier: &OtherPacket) -> bool {
        let Some(&(index, header)) = self.last.get(&barrier.queue) else {
            return false;
        };
        let follows = index.checked_add(1) == Some(barrier.index);
        let (before, this) = (Packet::with_header(header), Packet::with_header(barrier.header));
        let waits = before.barrier() || !this.barrier();
        follows && waits && this.acquire() <= before.acquire() && this.release() <= before.release()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    enum Step {
        /// A packet of a queue, at an index and a time, completes a signal.
        Uses(u32, u64, u64, u64),
        /// A queue has a read index at a time.
        Read(u32, u64, u64),
        Barrier(OtherPacket),
    }
    use Step::{Barrier, Read, Uses};

    fn barrier(queue: u32, index: u64, time_ns: u64, signals: &[u64]) -> OtherPacket {
        let mut waits_for = [0; 5];
        waits_for[..signals.len()].copy_from_slice(signals);
        OtherPacket {
            queue,
            kind: PacketKind::BarrierAnd,
            unread: None,
            header: 0x1503,
            waits_for: Some(waits_for),
            ..sample::unread(index, 1, time_ns)
        }
    }

    /// Returns the waits of the barriers, by queue.
    fn waits(steps: impl IntoIterator<Item = Step>) -> Vec<(u32, Wait)> {
        let mut found = Vec::new();
        let mut done = |queue, wait| found.push((queue, wait));
        let mut counter = Counter::default();
        for step in steps {
            match step {
                Uses(queue, index, time_ns, signal) => counter.uses((7, signal), (queue, index), time_ns, &mut done),
                Read(queue, read_index, time_ns) => counter.read_index((queue, read_index), time_ns, &mut done),
                Barrier(barrier) => counter.packet(&barrier, &mut done),
            }
        }
        counter.finish(&mut done);
        found
    }

    #[test]
    fn a_barrier_of_its_own_queue_waits_for_packets_that_were_not_taken() {
        let of = |read_index| {
            waits([
                Uses(0, 4, 10, 0xa),
                Barrier(barrier(0, 5, 20, &[0xa])),
                Read(0, read_index, 20),
                Read(0, 9, 30),
            ])
        };
        assert_eq!(of(4), [(0, Wait::OwnQueue)]);
        // The GPU had taken the packet: its signal may be that of a copy now.
        assert_eq!(of(5), [(0, Wait::Unknown)]);
        let mixed = [Uses(0, 4, 10, 0xa), Barrier(barrier(0, 5, 20, &[0xa, 0xb]))];
        assert_eq!(waits(mixed), [(0, Wait::Unknown)]);
    }

    #[test]
    fn the_next_read_index_of_the_other_queue_decides() {
        let of = |read_index| {
            waits([
                Uses(1, 4, 10, 0xa),
                Uses(0, 0, 11, 0xb),
                Barrier(barrier(0, 1, 20, &[0xb, 0xa])),
                Read(1, read_index, 30),
            ])
        };
        assert_eq!(of(4), [(0, Wait::OtherQueue)]);
        assert_eq!(of(5), [(0, Wait::PerhapsOtherQueue)]);
        let taken = [Uses(1, 4, 10, 0xa), Read(1, 5, 15), Barrier(barrier(0, 1, 20, &[0xa]))];
        assert_eq!(waits(taken), [(0, Wait::Unknown)]);
        let never_seen = [Uses(1, 4, 10, 0xa), Barrier(barrier(0, 1, 20, &[0xa]))];
        assert_eq!(waits(never_seen), [(0, Wait::PerhapsOtherQueue)]);
    }

    #[test]
    fn the_last_packet_before_with_the_signal_counts() {
        let steps = [
            Uses(1, 0, 10, 0xa),
            Uses(0, 0, 20, 0xa),
            Barrier(barrier(0, 1, 30, &[0xa])),
            Uses(1, 1, 40, 0xa),
        ];
        assert_eq!(waits(steps), [(0, Wait::OwnQueue)]);
    }

    #[test]
    fn packets_of_the_same_doorbell_come_in_any_order() {
        let steps = [Barrier(barrier(0, 1, 30, &[0xa])), Uses(0, 0, 30, 0xa)];
        assert_eq!(waits(steps), [(0, Wait::OwnQueue)]);
    }

    #[test]
    fn the_wait_of_a_barrier_without_the_bit_is_not_redundant() {
        let alone = OtherPacket {
            header: 0x1403,
            ..barrier(0, 1, 30, &[0xa])
        };
        assert_eq!(waits([Uses(0, 0, 10, 0xa), Barrier(alone)]), [(0, Wait::Before)]);
    }

    #[test]
    fn a_barrier_repeats_another_only_if_that_does_as_much() {
        let first = barrier(0, 1, 10, &[]);
        let second = barrier(0, 2, 20, &[]);
        let of =
            |first: &OtherPacket, second: &OtherPacket| waits([Barrier(first.clone()), Barrier(second.clone())])[1].1;
        assert_eq!(of(&first, &second), Wait::Nothing);
        let changed = [
            // Something can wait for it, it is not the next packet, or of another queue.
            OtherPacket {
                completion_signal: 5,
                ..second.clone()
            },
            OtherPacket {
                index: 3,
                ..second.clone()
            },
            OtherPacket {
                queue: 1,
                ..second.clone()
            },
        ];
        for second in changed {
            assert_eq!(of(&first, &second), Wait::Before);
        }
        // The first one does not wait for all packets, or acquires less, or releases less.
        for header in [0x1403, 0x1303, 0x0d03] {
            let first = OtherPacket {
                header,
                ..first.clone()
            };
            assert_eq!(of(&first, &second), Wait::Before, "{header:#x}");
        }
    }
}
