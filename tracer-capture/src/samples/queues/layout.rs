//! Where a queue is in the memory of its process.

use tracer_common::queue::{
    BASE_ADDRESS, HEAD_LEN, MAX_PACKETS, READ_DISPATCH_ID, SIGNAL_KIND, SIGNAL_KIND_DOORBELL,
    SIGNAL_KIND_LEGACY_DOORBELL, SIGNAL_QUEUE_PTR, SIZE, WRITE_DISPATCH_ID,
};

use super::extent::Indexes;
use crate::{
    decode::fetch::Fetch,
    samples::record::{half, word},
};

/// The place of a queue's signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// The address of the signal is at this address.
    Pointer(u64),
    /// The signal is at this address, if it is a doorbell at all.
    Signal(u64),
}

/// A queue that was found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) signal: u64,
    pub(super) queue: u64,
    pub(super) base: u64,
    pub(super) size: u32,
}

/// Why a queue was not read.
pub(super) enum Failed {
    Unread,
    NoDoorbell,
    /// Whether the signal is a doorbell is unknown.
    SignalUnread,
    /// Another queue is at its place now.
    Replaced,
}

/// Finds the queue of a signal.
pub(super) fn find(pid: u32, at: At, memory: &mut impl Fetch) -> Result<Found, Failed> {
    let signal = match at {
        At::Pointer(pointer) => read(pid, pointer, memory).ok_or(Failed::Unread)?,
        At::Signal(signal) => {
            let kind = read(pid, signal.wrapping_add(SIGNAL_KIND as u64), memory).ok_or(Failed::SignalUnread)?;
            if ![SIGNAL_KIND_DOORBELL, SIGNAL_KIND_LEGACY_DOORBELL].contains(&kind.cast_signed()) {
                return Err(Failed::NoDoorbell);
            }
            signal
        }
    };
    let queue = read(pid, signal.wrapping_add(SIGNAL_QUEUE_PTR as u64), memory).ok_or(Failed::Unread)?;
    let ((base, size), _) = head(pid, queue, memory).ok_or(Failed::Unread)?;
    Ok(Found {
        signal,
        queue,
        base,
        size,
    })
}

fn read(pid: u32, address: u64, memory: &mut impl Fetch) -> Option<u64> {
    let mut bytes = [0; 8];
    memory
        .fetch(pid, &mut [(address, &mut bytes)])
        .then(|| u64::from_ne_bytes(bytes))
}

/// Reads a queue's ring (address, packets) and indexes.
pub(super) fn head(pid: u32, queue: u64, memory: &mut impl Fetch) -> Option<((u64, u32), Indexes)> {
    let mut bytes = [0; HEAD_LEN];
    let is_there = memory.fetch(pid, &mut [(queue, &mut bytes)]);
    let (ring, indexes) = parse(&bytes);
    ring.filter(|_| is_there).map(|ring| (ring, indexes))
}

/// Returns the ring in the start of an `amd_queue_t`, if it makes sense, and the indexes.
pub(super) fn parse(head: &[u8; HEAD_LEN]) -> (Option<(u64, u32)>, Indexes) {
    let at = |offset| word(head, offset).unwrap_or(0);
    let size = half(head, SIZE).unwrap_or(0);
    let is_ring = size.is_power_of_two() && size <= MAX_PACKETS;
    let indexes = Indexes {
        read: at(READ_DISPATCH_ID),
        write: at(WRITE_DISPATCH_ID),
    };
    (is_ring.then(|| (at(BASE_ADDRESS), size)), indexes)
}
