//! The short way of the eBPF doorbell program, step by step. It takes a doorbell whose few packets follow those of the last one.

use tracer_common::aql::{Packet, packet_type};
use tracer_core::event::{Before, Doorbell, Origin, Packets};

use super::{HANDLE, Phase, Readable, Record, Sim, walk};

/// The most packets of a usual doorbell; small, as the rings are.
const MANY: u64 = 4;

pub struct Next {
    origin: Origin,
    value: u64,
    first: u64,
    /// The packets that were read, and the indexes of the packets that were truly there.
    read: Vec<(Packet, Option<u64>)>,
    /// The write index after the packets.
    write_index: Option<u64>,
    /// The read index after that.
    read_index: Option<u64>,
}

impl Sim {
    /// Processes the entry of a producer into the doorbell function, if the probe is there.
    pub(super) fn ring(&mut self, origin: Origin, value: u64) -> Phase {
        if !self.attached || origin.time_ns % 256 < u64::from(self.config.direct) {
            self.rung = self.rung.max((value + 1).min(self.write));
            return Phase::Idle;
        }
        let ring = self.config.ring;
        match (self.bpf, self.known_read) {
            (Some(state), Some(known_read))
                if state.all_at().is_some_and(|first| {
                    (first..first + MANY).contains(&value)
                        && value < known_read + ring
                        && first % ring + (value - first) < ring
                }) =>
            {
                Phase::Next(Next {
                    origin,
                    value,
                    first: state.max,
                    read: Vec::new(),
                    write_index: None,
                    read_index: None,
                })
            }
            _ => self.walk(origin, value),
        }
    }

    /// Reads one slot or an index, or ends.
    pub(super) fn step_next(&mut self, mut next: Next, choice: u8) -> Phase {
        let at = next.first + next.read.len() as u64;
        if at <= next.value {
            let slot = *self.slot(at);
            next.read.push((slot.packet, slot.owner));
            return Phase::Next(next);
        }
        let Some(write_index) = next.write_index else {
            next.write_index = Some(self.write);
            return Phase::Next(next);
        };
        let Some(read_index) = next.read_index else {
            next.read_index = Some(self.read);
            return Phase::Next(next);
        };
        let is_valid = next
            .read
            .iter()
            .all(|(packet, _)| packet.kind() != packet_type::INVALID);
        if !is_valid || read_index > next.first || self.drops(choice) {
            let time_ns = self.time_ns;
            return self.walk(Origin { time_ns, ..next.origin }, next.value);
        }
        self.submit_next(&next, read_index, write_index);
        let end = next.value + 1;
        self.bpf = Some(walk::State::after(self.bpf, end));
        self.known_read = Some(read_index);
        self.named.insert(next.value);
        self.was_rung(end, end);
        Phase::Idle
    }

    fn submit_next(&mut self, next: &Next, read_index: u64, write_index: u64) {
        let (ring, first, value) = (self.config.ring, next.first, next.value);
        for (index, (_, owner)) in (first..).zip(&next.read) {
            assert_eq!(*owner, Some(index), "another packet was taken for packet {index}");
            if let Some(truth) = self.truth_mut(index) {
                truth.readable.get_or_insert(Readable::Header);
            }
        }
        self.looked.get_or_insert((self.read, self.write));
        let origin = next.origin;
        let walk = Packets {
            origin,
            handle: HANDLE,
            first,
            ring_packets: ring as u32,
            read_index,
            write_index: write_index.min(read_index + ring),
            value,
            call: Some(walk::call(origin)),
            packets: &[],
            ready: 0,
            stamps: &[],
            proxy: false,
            before: Some(Before {
                rung_end: first,
                value,
                read_index,
            }),
        };
        let packets = next.read.iter().map(|(packet, _)| *packet).collect();
        self.log.push(Record::Packets { walk, packets });
        self.log.push(Record::Doorbell(Doorbell {
            origin,
            handle: HANDLE,
            value,
            first,
            end: value + 1,
            read_index,
            write_index,
            ring_base: 0,
            ring_packets: ring as u32,
            unreadable: false,
            beyond: false,
            rung_end: Some(first),
            proxy: false,
        }));
    }
}
