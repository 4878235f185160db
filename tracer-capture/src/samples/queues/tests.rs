use tracer_common::{
    aql::packet_type,
    queue::{BASE_ADDRESS, SIZE},
};

use super::*;
use crate::decode::fetch::Wanted;

/// Addresses in the memory of the process.
const POINTER: u64 = 0x100;
const SIGNAL: u64 = 0x1000;
const QUEUE: u64 = 0x2000;
const RING: u64 = 0x10_0000;
const SIZE_PACKETS: u64 = 8;

/// The memory of a process with one queue, whose GPU takes packets during reads.
struct Memory {
    read_index: u64,
    write_index: u64,
    slots: [Packet; SIZE_PACKETS as usize],
    signal: u64,
    /// The queue of that signal. The memory at [`QUEUE`] stays a queue.
    queue: u64,
    is_there: bool,
    /// What the GPU takes after the head of the queue is read, and before its slots are: each for one read.
    taken_meanwhile: Vec<u64>,
    /// The slot whose header its producer writes after the next read of the ring.
    written_meanwhile: Option<usize>,
    /// What the GPU takes after the next read of the ring.
    taken_between: Option<u64>,
    reads: usize,
}

impl Memory {
    /// A queue into whose slots the packets up to `write_index` were written.
    fn new(write_index: u64) -> Self {
        let mut memory = Self {
            read_index: 0,
            write_index: 0,
            slots: [Packet::ZERO; SIZE_PACKETS as usize],
            signal: SIGNAL,
            queue: QUEUE,
            is_there: true,
            taken_meanwhile: Vec::new(),
            written_meanwhile: None,
            taken_between: None,
            reads: 0,
        };
        memory.write(write_index);
        memory
    }

    fn write(&mut self, write_index: u64) {
        for index in self.write_index..write_index {
            let packet = &mut self.slots[(index % SIZE_PACKETS) as usize];
            packet.bytes[0] = packet_type::KERNEL_DISPATCH;
            packet.bytes[8] = index as u8;
        }
        self.write_index = write_index;
    }

    fn take(&mut self, read_index: u64) {
        for index in self.read_index..read_index {
            self.slots[(index % SIZE_PACKETS) as usize].bytes[0] = packet_type::INVALID;
        }
        self.read_index = self.read_index.max(read_index);
    }

    fn byte(&self, address: u64) -> u8 {
        let of = |base: u64, len: usize| {
            let at = address.checked_sub(base).map(|at| at as usize);
            at.filter(|at| *at < len)
        };
        let word = |value: u64, at: usize| value.to_le_bytes()[at % 8];
        if let Some(at) = of(POINTER, 8) {
            word(self.signal, at)
        } else if let Some(at) = of(self.signal + SIGNAL_QUEUE_PTR as u64, 8) {
            word(self.queue, at)
        } else if let Some(at) = of(QUEUE, HEAD_LEN).or_else(|| of(self.queue, HEAD_LEN)) {
            match at / 8 * 8 {
                BASE_ADDRESS => word(RING, at),
                SIZE => word(SIZE_PACKETS, at),
                WRITE_DISPATCH_ID => word(self.write_index, at),
                READ_DISPATCH_ID => word(self.read_index, at),
                _ => 0,
            }
        } else if let Some(at) = of(RING, self.slots.len() * PACKET_LEN) {
            self.slots[at / PACKET_LEN].bytes[at % PACKET_LEN]
        } else {
            0xee
        }
    }
}

impl Fetch for Memory {
    fn fetch(&mut self, pid: u32, wanted: &mut [Wanted<'_>]) -> bool {
        assert_eq!(pid, 7);
        self.reads += 1;
        for (address, bytes) in wanted.iter_mut() {
            if *address >= RING
                && let Some(read_index) = self.taken_meanwhile.pop()
            {
                self.take(read_index);
            }
            for (byte, at) in bytes.iter_mut().zip(*address..) {
                *byte = self.byte(at);
            }
            if *address >= RING
                && let Some(index) = self.written_meanwhile.take()
            {
                self.slots[index].bytes[0] = VALID;
            }
            if *address >= RING
                && let Some(read_index) = self.taken_between.take()
            {
                self.take(read_index);
            }
        }
        self.is_there
    }
}

fn at(time_ns: u64) -> Origin {
    Origin {
        pid: 7,
        tid: 7,
        time_ns,
    }
}

/// What came out: doorbells (value, first, end, read index), or packets (value of their doorbell, index, first byte, ninth byte).
#[derive(Debug, PartialEq, Eq)]
enum Out {
    Rang(u64, u64, u64, u64),
    Packet(u64, u64, u8, u8),
    Unreadable(u64),
}

fn flush(queues: &mut Queues, memory: &mut Memory, waits: bool) -> Vec<Out> {
    let mut all = Vec::new();
    let mut sink = |event: &Event<'_>| match event {
        Event::Doorbell(d) if d.unreadable => all.push(Out::Unreadable(d.value)),
        Event::Doorbell(d) => all.push(Out::Rang(d.value, d.first, d.end, d.read_index)),
        Event::Packets(walk) => {
            for (packet, index) in walk.packets.iter().zip(walk.first..) {
                all.push(Out::Packet(walk.value, index, packet.bytes[0], packet.bytes[8]));
            }
        }
        other => panic!("{other:?}"),
    };
    queues.flush(memory, &mut sink, |_| waits);
    all
}

const VALID: u8 = packet_type::KERNEL_DISPATCH;
const INVALID: u8 = packet_type::INVALID;

/// A queue whose creation was seen.
fn created() -> Queues {
    let mut queues = Queues::default();
    queues.begin(7, QUEUE + WRITE_DISPATCH_ID as u64);
    queues
}

#[test]
fn doorbells_share_one_read_and_each_has_its_packets() {
    let (mut queues, mut memory) = (created(), Memory::new(4));
    queues.ring(at(1), At::Pointer(POINTER), 1);
    queues.ring(at(2), At::Pointer(POINTER), 3);
    let expected = [
        Out::Packet(1, 0, VALID, 0),
        Out::Packet(1, 1, VALID, 1),
        Out::Rang(1, 0, 2, 0),
        Out::Packet(3, 2, VALID, 2),
        Out::Packet(3, 3, VALID, 3),
        Out::Rang(3, 2, 4, 0),
    ];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
    // Pointer, signal and head are read once; from then on one read is enough.
    let reads = memory.reads;
    memory.write(5);
    queues.ring(at(3), At::Pointer(POINTER), 4);
    assert_eq!(
        flush(&mut queues, &mut memory, false),
        [Out::Packet(4, 4, VALID, 4), Out::Rang(4, 4, 5, 0)]
    );
    assert_eq!(memory.reads, reads + 1);
}

/// Between the read of the index and the copy of the slot, the GPU takes the packet: an empty slot looks the same. Another copy, after
/// another look at the index, shows the difference.
#[test]
fn a_packet_that_the_gpu_takes_during_the_copy_is_copied_again() {
    let (mut queues, mut memory) = (created(), Memory::new(1));
    memory.taken_meanwhile.push(1);
    queues.ring(at(1), At::Pointer(POINTER), 0);
    let out = flush(&mut queues, &mut memory, false);
    let expected = [
        Out::Packet(0, 0, INVALID, 0),
        Out::Packet(0, 0, INVALID, 0),
        Out::Rang(0, 0, 1, 0),
    ];
    assert_eq!(out, expected);
    assert_eq!(queues.extents[&(7, QUEUE)].low, 1);
}

/// Another thread writes its packet while it is copied: with the header, a copy need not have the rest.
#[test]
fn a_packet_that_is_written_during_the_copy_is_not_valid_yet() {
    let (mut queues, mut memory) = (created(), Memory::new(2));
    memory.slots[0].bytes[0] = INVALID;
    memory.written_meanwhile = Some(0);
    queues.ring(at(1), At::Pointer(POINTER), 1);
    let expected = [
        Out::Packet(1, 0, INVALID, 0),
        Out::Packet(1, 1, VALID, 1),
        Out::Rang(1, 0, 2, 0),
    ];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
    assert_eq!(memory.slots[0].bytes[0], VALID);
    assert_eq!(queues.extents[&(7, QUEUE)].low, 0);
    queues.ring(at(2), At::Pointer(POINTER), 0);
    assert!(flush(&mut queues, &mut memory, false).contains(&Out::Packet(0, 0, VALID, 0)));
}

/// The GPU takes a packet between its two copies.
#[test]
fn a_packet_that_is_taken_between_its_copies_keeps_its_header() {
    let (mut queues, mut memory) = (created(), Memory::new(1));
    memory.taken_between = Some(1);
    queues.ring(at(1), At::Pointer(POINTER), 0);
    let expected = [Out::Packet(0, 0, VALID, 0), Out::Rang(0, 0, 1, 0)];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
    assert_eq!(memory.slots[0].bytes[0], INVALID);
}

/// The GPU has set the header of the last packet to INVALID, and its read index does not show it yet.
fn half_taken() -> (Queues, Memory) {
    let (mut queues, mut memory) = (created(), Memory::new(1));
    memory.slots[0].bytes[0] = INVALID;
    queues.ring(at(1), At::Pointer(POINTER), 0);
    let out = flush(&mut queues, &mut memory, false);
    assert_eq!(out, [Out::Packet(0, 0, INVALID, 0), Out::Rang(0, 0, 1, 0)]);
    assert_eq!(queues.extents[&(7, QUEUE)].low, 0);
    (queues, memory)
}

#[test]
fn a_packet_that_the_gpu_was_taking_is_read_again_before_its_queue_ends() {
    let (mut queues, mut memory) = half_taken();
    memory.take(1);
    let mut read = Vec::new();
    let mut sink = |event: &Event<'_>| match event {
        Event::Packets(walk) => read.push((walk.origin.time_ns, walk.first, walk.packets.len(), walk.read_index)),
        other => panic!("{other:?}"),
    };
    queues.finish(8, &mut memory, &mut sink);
    queues.finish(7, &mut memory, &mut sink);
    queues.finish(7, &mut memory, &mut sink);
    assert_eq!(read, [(1, 0, 1, 1)], "once, as that of its doorbell");
    assert!(queues.unfinished.is_empty());
    assert_eq!((queues.copied.len(), queues.packets.len()), (0, 0));
}

#[test]
fn a_packet_that_the_gpu_was_taking_is_read_again_after_a_while() {
    let (mut queues, mut memory) = half_taken();
    let mut reads = 0;
    let mut later = |queues: &mut Queues, memory: &mut Memory, at: Duration| {
        let before = reads;
        queues.read_due(Instant::now() + at, memory, &mut |_| reads += 1);
        reads - before
    };
    assert_eq!(later(&mut queues, &mut memory, Duration::ZERO), 0, "not yet");
    assert_eq!(later(&mut queues, &mut memory, Duration::from_secs(1)), 1);
    assert_eq!(queues.unfinished.len(), 1, "it was still not taken");
    memory.take(1);
    assert_eq!(later(&mut queues, &mut memory, Duration::from_secs(2)), 1);
    assert_eq!(
        later(&mut queues, &mut memory, Duration::from_secs(4)),
        0,
        "it is final"
    );
}

/// The doorbell after it has the packet. Nothing is read twice.
#[test]
fn a_later_doorbell_finishes_what_was_unfinished() {
    let (mut queues, mut memory) = half_taken();
    memory.take(1);
    memory.write(2);
    queues.ring(at(2), At::Pointer(POINTER), 1);
    let out = flush(&mut queues, &mut memory, false);
    let expected = [
        Out::Packet(1, 0, INVALID, 0),
        Out::Packet(1, 1, VALID, 1),
        Out::Rang(1, 0, 2, 1),
    ];
    assert_eq!(out, expected);
    assert!(queues.unfinished.is_empty());
}

/// A queue at the same address begins: nothing of the former one is read in its ring.
#[test]
fn a_new_queue_is_not_read_for_the_former_one() {
    let (mut queues, mut memory) = half_taken();
    queues.begin(7, QUEUE + WRITE_DISPATCH_ID as u64);
    queues.read_due(Instant::now() + Duration::from_secs(1), &mut memory, &mut |event| {
        panic!("{event:?}")
    });
}

#[test]
fn a_ring_that_wraps_around_is_read_in_two_pieces() {
    let (mut queues, mut memory) = (created(), Memory::new(6));
    queues.ring(at(1), At::Pointer(POINTER), 5);
    flush(&mut queues, &mut memory, false);
    memory.take(6);
    memory.write(10);
    queues.ring(at(2), At::Pointer(POINTER), 9);
    let own = |index| Out::Packet(9, index, VALID, index as u8);
    let expected = [own(6), own(7), own(8), own(9), Out::Rang(9, 6, 10, 6)];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
    // Twice around: the packets of the first time are gone, and none is claimed for them.
    memory.take(10);
    memory.write(18);
    memory.take(18);
    memory.write(20);
    queues.ring(at(3), At::Pointer(POINTER), 19);
    let out = flush(&mut queues, &mut memory, false);
    assert_eq!(out.last(), Some(&Out::Rang(19, 12, 20, 18)));
    let indexes = out.iter().filter_map(|out| match out {
        Out::Packet(_, index, ..) => Some(*index),
        _ => None,
    });
    assert_eq!(indexes.collect::<Vec<_>>(), (12..20).collect::<Vec<_>>());
}

/// The first doorbell of a queue that existed before: the GPU has passed its packet by now, and had not when it was rung.
#[test]
fn an_unknown_queue_begins_at_its_first_doorbell() {
    let (mut queues, mut memory) = (Queues::default(), Memory::new(6));
    memory.take(6);
    queues.ring(at(1), At::Pointer(POINTER), 4);
    queues.ring(at(2), At::Pointer(POINTER), 5);
    let expected = [
        Out::Rang(4, 4, 5, 4),
        Out::Packet(4, 4, INVALID, 4),
        Out::Packet(5, 5, INVALID, 5),
        Out::Rang(5, 5, 6, 5),
    ];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
}

#[test]
fn memory_that_is_gone_leaves_a_doorbell() {
    let (mut queues, mut memory) = (created(), Memory::new(1));
    memory.is_there = false;
    queues.ring(at(1), At::Pointer(POINTER), 0);
    assert_eq!(flush(&mut queues, &mut memory, false), [Out::Unreadable(0)]);
    // A signal that is no doorbell is none.
    memory.is_there = true;
    queues.ring(at(1), At::Signal(SIGNAL), 0);
    assert_eq!(flush(&mut queues, &mut memory, false), []);
}

/// A queue was destroyed, and another one has its place: its signal is at another address.
#[test]
fn a_queue_at_the_place_of_another_one_is_found_again() {
    let (mut queues, mut memory) = (created(), Memory::new(2));
    queues.ring(at(1), At::Pointer(POINTER), 0);
    flush(&mut queues, &mut memory, false);
    (memory.signal, memory.queue) = (SIGNAL + 0x800, QUEUE + 0x800);
    queues.begin(7, QUEUE + 0x800 + WRITE_DISPATCH_ID as u64);
    queues.ring(at(2), At::Pointer(POINTER), 1);
    let expected = [
        Out::Packet(1, 0, VALID, 0),
        Out::Packet(1, 1, VALID, 1),
        Out::Rang(1, 0, 2, 0),
    ];
    assert_eq!(flush(&mut queues, &mut memory, false), expected);
}

#[test]
fn what_waits_comes_later() {
    let (mut queues, mut memory) = (created(), Memory::new(1));
    queues.ring(at(1), At::Pointer(POINTER), 0);
    assert_eq!(flush(&mut queues, &mut memory, true), []);
    assert_eq!(
        flush(&mut queues, &mut memory, false),
        [Out::Packet(0, 0, VALID, 0), Out::Rang(0, 0, 1, 0)]
    );
}
