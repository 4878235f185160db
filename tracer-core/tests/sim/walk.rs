//! The walk of the eBPF doorbell program, step by step, so that everything else can happen between two reads.

use tracer_common::aql::{Packet, packet_type};
use tracer_core::event::{Before, Doorbell, InCall, Origin, Packets};

use super::{HANDLE, Phase, Readable, Record, Sim};

/// Packets in a record; small, so that walks need several records.
const CHUNK: usize = 3;
/// Packets that a late doorbell reads again; small, so that a batch can exceed it.
const OWN: u64 = 4;

/// State that the program keeps for a queue.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The lowest index not captured yet.
    low: u64,
    /// Every lower index was copied, whether final or not.
    copied: u64,
    /// One past the highest published index.
    pub max: u64,
}

impl State {
    pub fn at(index: u64) -> Self {
        Self {
            low: index,
            copied: index,
            max: index,
        }
    }

    /// The state after everything up to an index was captured, and `before` it.
    pub fn after(before: Option<Self>, index: u64) -> Self {
        let max = before.map_or(index, |state| state.max.max(index));
        Self { max, ..Self::at(index) }
    }

    /// Returns the index up to which everything was published, copied and captured, if it is one.
    pub fn all_at(self) -> Option<u64> {
        (self.low == self.max && self.copied == self.max).then_some(self.max)
    }
}

pub struct Walk {
    origin: Origin,
    value: u64,
    first: u64,
    end: u64,
    beyond: bool,
    rung_end: Option<u64>,
    max: u64,
    read_index: u64,
    /// Next index to read, in the first range.
    at: u64,
    /// Ranges left to read. The last one is the range of the new packets.
    ranges: Vec<(u64, u64)>,
    copied: u64,
    chunk: Vec<(Packet, Option<Readable>)>,
    /// Every lower index was final.
    captured: u64,
    dropped: bool,
}

/// Returns the call of a record. It has the number of its thread.
pub fn call(origin: Origin) -> InCall {
    InCall {
        call: u64::from(origin.tid),
        stream: Some(7),
    }
}

impl Sim {
    /// Begins a walk.
    pub(super) fn walk(&mut self, origin: Origin, value: u64) -> Phase {
        let (read_index, write_index) = (self.read, self.write);
        let rung_end = self.bpf.map(|state| state.max);
        self.unseen.extend(self.seen_end..read_index.min(value));
        let ring = self.config.ring;
        let state = *self.bpf.get_or_insert(State::at(read_index.min(value)));
        // Packets that the GPU has not passed are still there, however far ahead of the ring producers have reserved.
        let first = state.low.max(write_index.saturating_sub(ring).min(read_index));
        let beyond = (value + 1).saturating_sub(first) > ring;
        if !beyond && value >= read_index {
            self.named.insert(value);
        }
        let end = if beyond { write_index } else { value + 1 };
        let end = end.max(state.max).clamp(first, first + ring);
        let max = state.max.max(if beyond { end } else { value + 1 });
        let (at, captured) = (first, first);
        let chunk = Vec::new();
        let copied = state.copied.clamp(first, end);
        let catch_up = first + (end - copied) + CHUNK as u64;
        let own_end = (value + 1).min(copied);
        let ranges = vec![
            (first, catch_up.min(copied)),
            (own_end.saturating_sub(OWN), own_end),
            (copied, end),
        ];
        Phase::Ringing(Walk {
            ranges,
            copied,
            origin,
            value,
            first,
            end,
            beyond,
            rung_end,
            max,
            read_index,
            at,
            chunk,
            captured,
            dropped: false,
        })
    }

    /// Reads one slot, or ends the walk.
    pub(super) fn step(&mut self, mut walk: Walk, choice: u8) -> Phase {
        let stop = walk.ranges.first().map_or(walk.at, |range| range.1);
        if walk.at < stop {
            let slot = *self.slot(walk.at);
            walk.chunk.push((slot.packet, self.oracle(&walk, slot)));
            walk.at += 1;
        }
        let range_done = walk.at >= stop;
        if walk.chunk.len() == CHUNK || range_done {
            self.submit_packets(&mut walk, choice);
        }
        if range_done && !walk.dropped {
            walk.ranges.remove(0);
            if let Some(next) = walk.ranges.first() {
                walk.at = walk.at.max(next.0);
            }
        }
        if !walk.ranges.is_empty() && !walk.dropped {
            return Phase::Ringing(walk);
        }
        if self.config.drops == 0 {
            self.assert_own_were_read(&walk);
        }
        let low = if self.submit_doorbell(&walk, choice) {
            walk.first
        } else {
            walk.captured
        };
        // There is no lock: a walk that ran at the same time may be set back, and its packets may be read again.
        self.bpf = Some(State {
            low,
            copied: walk.copied,
            max: self.bpf.map_or(walk.max, |state| state.max.max(walk.max)),
        });
        self.known_read = Some(walk.read_index);
        self.was_rung(walk.end, walk.max);
        Phase::Idle
    }

    /// Ends a doorbell that published packets below `end`, if those below `max` are published.
    pub(super) fn was_rung(&mut self, end: u64, max: u64) {
        self.seen_end = self.seen_end.max(max);
        // `Truth::rung_before` and `Sim::named` show which lower indexes an attached tracer may claim.
        let (from, to) = self.published.unwrap_or((0, 0));
        self.published = Some((from, to.max(end)));
        // The store itself.
        self.rung = self.rung.max(end);
    }

    /// Asserts that the walk of a thread's own doorbell reads the packets that the thread has just published, if they are still
    /// there.
    fn assert_own_were_read(&mut self, walk: &Walk) {
        let own = (walk.value + 1).saturating_sub(OWN).max(walk.first)..walk.end.min(walk.value + 1);
        for index in own {
            let slot = *self.slot(index);
            let Some(truth) = self.truth_of(index).filter(|truth| truth.tid == walk.origin.tid) else {
                continue;
            };
            let intact = slot.owner == Some(index) && index < walk.read_index + self.config.ring;
            if intact && slot.packet.kind() != packet_type::INVALID {
                assert!(
                    truth.readable.is_some(),
                    "{index} was not read at the doorbell {}",
                    walk.value
                );
            }
        }
    }

    /// Returns what the slot shows of the index that is read, given the truth about the packet in the slot.
    fn oracle(&self, walk: &Walk, slot: super::Slot) -> Option<Readable> {
        // tracer cannot know yet that the former packet is gone, even if it is.
        let provable = walk.at < walk.read_index + self.config.ring;
        if slot.owner != Some(walk.at) || !provable {
            return None;
        }
        let truth = self.truth_of(walk.at)?;
        match (slot.packet.kind(), truth.packet.kind()) {
            (packet_type::INVALID, _) if walk.at >= walk.read_index => None,
            (packet_type::INVALID, packet_type::KERNEL_DISPATCH) => Some(Readable::Body),
            (packet_type::INVALID, _) => Some(Readable::Consumed),
            _ => Some(Readable::Header),
        }
    }

    fn submit_packets(&mut self, walk: &mut Walk, choice: u8) {
        let ring = self.config.ring;
        // One past the last index that may have been written: the former packet of its slot must have been consumed.
        let write_index = self.write.min(self.read + ring);
        let first = walk.at - walk.chunk.len() as u64;
        let chunk = std::mem::take(&mut walk.chunk);
        let dropped = !chunk.is_empty() && self.drops(choice);
        // The walk ends where a record cannot be stored.
        walk.dropped |= dropped;
        if walk.ranges.len() == 1 && !dropped {
            walk.copied = walk.at;
        }
        for (index, (packet, readable)) in (first..).zip(&chunk) {
            let still_its_slot = write_index <= index + ring;
            let not_stale = index < walk.read_index + ring;
            let is_final = packet.kind() != packet_type::INVALID || index < walk.read_index;
            if !dropped && walk.captured == index && (!still_its_slot || (not_stale && is_final)) {
                walk.captured += 1;
            }
            if let Some(truth) = self.truth_mut(index)
                && still_its_slot
                && !dropped
            {
                truth.readable = truth.readable.or(*readable);
            }
        }
        if !dropped && !chunk.is_empty() {
            self.looked.get_or_insert((self.read, self.write));
            let packets = chunk.into_iter().map(|(packet, _)| packet).collect();
            let (origin, ring_packets) = (walk.origin, ring as u32);
            let read_index = walk.read_index;
            let walk = Packets {
                origin,
                handle: HANDLE,
                first,
                ring_packets,
                read_index,
                write_index,
                value: walk.value,
                call: Some(call(walk.origin)),
                packets: &[],
                ready: 0,
                stamps: &[],
                proxy: false,
                before: walk.rung_end.map(|rung_end| Before {
                    rung_end,
                    value: walk.value,
                    read_index,
                }),
            };
            self.log.push(Record::Packets { walk, packets });
        }
    }

    /// Submits the doorbell's record. Returns whether it was dropped.
    fn submit_doorbell(&mut self, walk: &Walk, choice: u8) -> bool {
        let dropped = self.drops(choice.rotate_left(3));
        if !dropped {
            self.looked.get_or_insert((self.read, self.write));
            self.log.push(Record::Doorbell(Doorbell {
                origin: walk.origin,
                handle: HANDLE,
                value: walk.value,
                first: walk.first,
                end: walk.end,
                read_index: walk.read_index,
                write_index: self.write,
                ring_base: 0x5000,
                ring_packets: self.config.ring as u32,
                unreadable: false,
                beyond: walk.beyond,
                rung_end: walk.rung_end,
                proxy: false,
            }));
        }
        self.doorbell_dropped |= dropped;
        dropped
    }

    pub(super) fn drops(&self, choice: u8) -> bool {
        choice < self.config.drops
    }
}
