//! Tests of the single rules, on traces written by hand. For interleavings and loss in general, see `tests/reconstruction.rs`.

mod adoption;
mod code_objects;
mod gpu_times;
mod processes;
mod proxies;
mod queue_origin;
mod queues;
mod reserves;
mod ring_jobs;
mod samples;
mod taken;
mod walks;

use tracer_common::aql::{Packet, packet_type};

use super::{LINGER_NS, Model};
use crate::event::{Before, Doorbell, Event, Ioctl, Origin, Packets, Reserve, ReserveOp};
use crate::tables::{self, Fact, OtherPacket, PacketKind, Path, Unread};

const PID: u32 = 7;
const TID: u32 = 70;
const HANDLE: u64 = 0x7000_0000;
const RING: u32 = 4;
const CREATE: u32 = 0xc060_4b02;
const DESTROY: u32 = 0xc008_4b03;

/// A model and its conclusions.
struct Trace {
    model: Model,
    facts: Vec<Fact>,
}

fn by(time_ns: u64, tid: u32) -> Origin {
    Origin { time_ns, pid: PID, tid }
}

/// Returns a walk and its doorbell: `value`, over `first..end`, at `read` and `write`.
fn doorbell(time_ns: u64, value: u64, walk: std::ops::Range<u64>, read: u64, write: u64) -> Doorbell {
    Doorbell {
        origin: by(time_ns, TID),
        handle: HANDLE,
        value,
        first: walk.start,
        end: walk.end,
        read_index: read,
        write_index: write,
        ring_base: 0x5000,
        ring_packets: RING,
        unreadable: false,
        beyond: false,
        rung_end: None,
        proxy: false,
    }
}

fn packet(kind: u8, index: u64) -> Packet {
    let mut bytes = [0; 64];
    bytes[0] = kind;
    bytes[2] = 1;
    bytes[4..10].copy_from_slice(&[64, 0, 1, 0, 1, 0]);
    bytes[12..24].copy_from_slice(&[0, 4, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
    bytes[0x20..0x28].copy_from_slice(&((index + 1) * 64).to_le_bytes());
    Packet { bytes }
}

/// Returns a dispatch whose kernel object encodes its index.
fn dispatch(index: u64) -> Packet {
    packet(packet_type::KERNEL_DISPATCH, index)
}

/// Returns a slot whose dispatch was consumed.
fn consumed(index: u64) -> Packet {
    packet(packet_type::INVALID, index)
}

/// Returns a slot whose PM4-IB packet was consumed.
fn pm4_ib(index: u64) -> Packet {
    let mut bytes = [0; 64];
    let words = [0x0001_0001, 0xc002_3f00, 0x1000_0000, 0x7f00, 0x0080_0008, 10_u32];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes[56..].copy_from_slice(&(index + 1).to_le_bytes());
    Packet { bytes }
}

/// Returns an empty slot.
fn empty() -> Packet {
    let mut bytes = [0; 64];
    bytes[0] = packet_type::INVALID;
    Packet { bytes }
}

impl Trace {
    /// Returns a trace that knows nothing.
    fn new() -> Self {
        Self {
            model: Model::new(),
            facts: Vec::new(),
        }
    }

    /// Returns a trace with the creation of the queue, with id 1, at 10 to 20 ns.
    fn created() -> Self {
        let mut trace = Self::new();
        trace.create(10, 20, 1);
        trace
    }

    fn apply(&mut self, event: &Event<'_>) {
        self.model.apply(event, &mut |fact| self.facts.push(fact));
    }

    fn ioctl(&mut self, time_ns: u64, exit_ns: u64, cmd: u32, arg: &[u8]) {
        let (arg_in, arg_out) = (Some(arg), Some(arg));
        let origin = by(time_ns, TID);
        self.apply(&Event::Ioctl(Ioctl {
            origin,
            exit_ns,
            fd: 3,
            cmd,
            ret: Some(0),
            arg_in,
            arg_out,
        }));
    }

    fn create(&mut self, time_ns: u64, exit_ns: u64, id: u8) {
        let mut arg = [0; 96];
        arg[8..16].copy_from_slice(&super::write_pointer(HANDLE).to_le_bytes());
        arg[0x20..0x22].copy_from_slice(&256_u16.to_le_bytes());
        arg[40] = 2;
        arg[52] = id;
        self.ioctl(time_ns, exit_ns, CREATE, &arg);
    }

    fn destroy(&mut self, time_ns: u64, exit_ns: u64, id: u8) {
        self.ioctl(time_ns, exit_ns, DESTROY, &[id, 0, 0, 0, 0, 0, 0, 0]);
    }

    fn reserve(&mut self, time_ns: u64, tid: u32, write_index: u64, op: ReserveOp) {
        let write_index = Some(write_index);
        self.apply(&Event::Reserve(Reserve {
            origin: by(time_ns, tid),
            handle: HANDLE,
            op,
            write_index,
        }));
    }

    /// Applies packets from the start of the doorbell's walk on, then the doorbell.
    fn ring(&mut self, doorbell: Doorbell, packets: &[Packet]) {
        self.packets(doorbell, packets);
        self.apply(&Event::Doorbell(doorbell));
    }

    /// Applies the packets alone.
    fn packets(&mut self, walk: Doorbell, packets: &[Packet]) {
        let Doorbell {
            origin,
            handle,
            first,
            ring_packets,
            read_index,
            write_index,
            value,
            rung_end,
            proxy,
            ..
        } = walk;
        let before = rung_end.map(|rung_end| Before {
            rung_end,
            value,
            read_index,
        });
        self.apply(&Event::Packets(Packets {
            origin,
            handle,
            first,
            ring_packets,
            read_index,
            write_index,
            value: (first + packets.len() as u64).saturating_sub(1),
            call: None,
            packets,
            ready: 0,
            stamps: &[],
            before,
            proxy,
        }));
    }

    /// Ends the trace. Returns the final numbers of the queues.
    fn finish(&mut self) -> Vec<tables::Queue> {
        self.model.finish(1 << 60, &mut |fact| self.facts.push(fact));
        self.queues()
    }

    fn queues(&self) -> Vec<tables::Queue> {
        self.facts
            .iter()
            .filter_map(|fact| {
                if let Fact::Queue(queue) = fact {
                    Some(queue.clone())
                } else {
                    None
                }
            })
            .collect()
    }

    fn dispatches(&self) -> Vec<tables::Dispatch> {
        let each = self.facts.iter();
        each.filter_map(|fact| {
            if let Fact::Dispatch(d) = fact {
                Some(d.clone())
            } else {
                None
            }
        })
        .collect()
    }

    /// Returns the indexes of dispatches. Each dispatch must have the kernel of its index.
    fn indexes(&self) -> Vec<u64> {
        let check = |d: tables::Dispatch| {
            assert_eq!(d.kernel_object, (d.index + 1) * 64, "{d:?}");
            d.index
        };
        self.dispatches().into_iter().map(check).collect()
    }

    fn others(&self) -> Vec<OtherPacket> {
        let each = self.facts.iter();
        each.filter_map(|fact| {
            if let Fact::Packet(p) = fact {
                Some(p.clone())
            } else {
                None
            }
        })
        .collect()
    }

    /// Returns index, kind and path of each packet that was read and is no dispatch.
    fn read_others(&self) -> Vec<(u64, PacketKind, Path)> {
        let read = self.others().into_iter().filter(|p| p.unread.is_none());
        read.map(|p| (p.index, p.kind, p.path)).collect()
    }

    /// Returns the runs of unread indexes: first index, count, reason.
    fn unread(&self) -> Vec<(u64, u64, Unread)> {
        self.others()
            .iter()
            .filter_map(|p| Some((p.index, p.count, p.unread?)))
            .collect()
    }

    fn doorbells(&self) -> Vec<tables::Doorbell> {
        let each = self.facts.iter();
        each.filter_map(|fact| {
            if let Fact::Doorbell(d) = fact {
                Some(d.clone())
            } else {
                None
            }
        })
        .collect()
    }

    fn published(&self) -> Vec<u64> {
        self.doorbells().iter().map(|doorbell| doorbell.published).collect()
    }
}
