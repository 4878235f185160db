//! An AQL queue in the memory of this process.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use tracer_common::{
    aql::{PACKET_LEN, packet_type},
    queue,
};

use super::functions::Function;
use crate::sys;

/// Packets in a ring.
const SLOTS: u64 = 4096;

/// A queue in the memory of this process, with the signal that is its doorbell. Its packets are taken as soon as they are published.
pub struct Queue {
    /// `amd_queue_t`.
    queue: Box<[AtomicU64; 32]>,
    signal: Box<[AtomicU64; 16]>,
    /// The runtime's object: the address of the signal.
    object: Box<u64>,
    ring: Box<[[AtomicU64; PACKET_LEN / 8]]>,
    /// Index of the next packet.
    next: u64,
}

impl Queue {
    /// Creates a queue without packets.
    pub fn new() -> Self {
        let words = || std::array::from_fn(|_| AtomicU64::new(u64::from(packet_type::INVALID)));
        let mut this = Self {
            queue: Box::default(),
            signal: Box::default(),
            object: Box::default(),
            ring: (0..SLOTS).map(|_| words()).collect(),
            next: 0,
        };
        this.queue[queue::BASE_ADDRESS / 8].store(this.ring.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
        this.queue[queue::SIZE / 8].store(SLOTS, Ordering::Relaxed);
        let queue = this.queue.as_ptr().expose_provenance() as u64;
        *this.object = this.signal.as_ptr().expose_provenance() as u64;
        this.signal[queue::SIGNAL_QUEUE_PTR / 8].store(queue, Ordering::Relaxed);
        this
    }

    /// Rings so many doorbells, for so many packets each. Returns the time that they take, ns.
    pub fn round(&mut self, function: Function, doorbells: u64, packets: u64) -> u64 {
        let began = sys::monotonic_ns();
        for _ in 0..doorbells {
            let end = self.next + packets;
            (self.next..end).for_each(|index| self.publish(index));
            self.queue[queue::WRITE_DISPATCH_ID / 8].store(end, Ordering::Release);
            black_box(function)(&raw const *self.object, end - 1);
            let taken = u64::from(packet_type::INVALID);
            (self.next..end).for_each(|index| self.slot(index)[0].store(taken, Ordering::Release));
            self.queue[queue::READ_DISPATCH_ID / 8].store(end, Ordering::Release);
            self.next = end;
        }
        sys::monotonic_ns() - began
    }

    /// Calls a function that advances the write index so often. Returns the time that the calls take, ns.
    pub fn reserves(&mut self, function: Function, calls: u64) -> u64 {
        let began = sys::monotonic_ns();
        for _ in 0..calls {
            black_box(function)(self.queue.as_ptr().cast(), 1);
            self.publish(self.next);
            self.next += 1;
            self.queue[queue::WRITE_DISPATCH_ID / 8].store(self.next, Ordering::Release);
        }
        sys::monotonic_ns() - began
    }

    fn slot(&self, index: u64) -> &[AtomicU64; PACKET_LEN / 8] {
        &self.ring[(index % SLOTS) as usize]
    }

    /// Writes a packet, and its header last.
    fn publish(&self, index: u64) {
        let [header, body @ ..] = self.slot(index);
        body.iter().for_each(|word| word.store(index, Ordering::Relaxed));
        header.store(u64::from(packet_type::KERNEL_DISPATCH), Ordering::Release);
    }
}
