//! The packets of doorbells, read from the process's memory after the doorbells.
//!
//! The doorbells of a pass are collected first. Then each queue is read once, and what was read is divided among the queue's
//! doorbells by their values. The indexes around each copy say which slots still held their packets
//! ([`Packets::write_index`]).

mod extent;
mod layout;
mod unfinished;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tracer_common::{
    aql::{PACKET_LEN, Packet},
    queue::{HEAD_LEN, READ_DISPATCH_ID, SIGNAL_QUEUE_PTR, WRITE_DISPATCH_ID},
    record::PACKETS_PER_RECORD,
};
use tracer_core::event::{Doorbell, Event, Origin, Packets};

pub use self::layout::At;
use self::{
    extent::{Extent, Indexes, Range},
    layout::{Failed, Found, find, head, parse},
    unfinished::Unfinished,
};
use super::record::word;
use crate::{
    complete,
    decode::{bytes_of, fetch::Fetch},
};

/// Packets that are read at once.
const AT_ONCE: u64 = 256;
/// How often packets are copied again that the GPU took during the copy.
const AGAIN: u32 = 3;
/// Most packets of one pass. Doorbells beyond them are unread: rings of fake queues could take any memory.
const MAX_PACKETS_AT_ONCE: usize = 1 << 20;
/// The longest time for one process in a pass. A process can delay each read of its memory.
const PATIENCE: Duration = Duration::from_millis(500);
/// Most doorbells that wait.
const MAX_WAITING: usize = 1 << 18;
/// Most queues that are remembered. A queue that returns after that is read from the GPU's read index on.
const MAX_QUEUES: usize = 16 << 10;
/// Bytes from the write index to the read index, including both.
const INDEXES: usize = READ_DISPATCH_ID - WRITE_DISPATCH_ID + 8;

/// A doorbell of the pass.
#[derive(Clone, Copy, Debug)]
struct Rung {
    origin: Origin,
    at: At,
    value: u64,
    /// The lowest value of this doorbell and of later ones of its queue in this pass.
    lowest: u64,
    walk: Walk,
}

impl Rung {
    fn key(&self) -> (u32, At) {
        (self.origin.pid, self.at)
    }
}

/// What was read for a doorbell.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// The memory could not be read.
    Unread,
    /// The signal is not a doorbell.
    NoDoorbell,
    /// These packets of a queue, which may be none.
    Done {
        found: Found,
        range: Range,
        /// The indexes when it was read. The read index is bounded: no packet is taken before its doorbell, so when this doorbell
        /// was rung, the GPU had passed neither its own packet nor those of later doorbells.
        then: Indexes,
        /// Whether the queue was not known before.
        is_new: bool,
        /// The copies of the queue in this pass: the places of the first one, and after the last one, among [`Queues::copied`].
        copies: (usize, usize),
    },
}

/// Packets that were read at once, from index `first` on.
#[derive(Clone, Copy, Debug)]
struct Copied {
    first: u64,
    end: u64,
    /// Read index before the copy.
    read_index: u64,
    /// [`Indexes::limit`] after the copy.
    limit: u64,
    /// Index of the first one in [`Queues::packets`].
    at: usize,
}

/// The doorbells of a pass, and what is known about queues.
#[derive(Debug, Default)]
pub struct Queues {
    rung: Vec<Rung>,
    waiting: Vec<Rung>,
    order: Vec<usize>,
    copied: Vec<Copied>,
    packets: Vec<Packet>,
    /// The earlier copy of the same packets: see [`complete`].
    earlier: Vec<Packet>,
    found: HashMap<(u32, At), Found>,
    /// Stores to signals that may have been doorbells.
    pub signals_unread: u64,
    /// By process and queue.
    extents: HashMap<(u32, u64), Extent>,
    /// By process and place.
    unfinished: HashMap<(u32, At), Unfinished>,
}

impl Queues {
    /// Notes a doorbell.
    pub fn ring(&mut self, origin: Origin, at: At, value: u64) {
        let walk = Walk::Unread;
        self.rung.push(Rung {
            origin,
            at,
            value,
            lowest: value,
            walk,
        });
    }

    /// Notes that a queue was created: it begins at index 0, whatever was at its address before.
    pub fn begin(&mut self, pid: u32, write_pointer: u64) {
        let queue = write_pointer.wrapping_sub(WRITE_DISPATCH_ID as u64);
        self.unfinished
            .retain(|(of, _), unfinished| (*of, unfinished.queue) != (pid, queue));
        self.remember(pid, queue, Extent::default());
    }

    /// Forgets the queues of a process.
    pub fn forget(&mut self, pid: u32) {
        self.found.retain(|(of, _), _| *of != pid);
        self.extents.retain(|(of, _), _| *of != pid);
        self.unfinished.retain(|(of, _), _| *of != pid);
    }

    fn remember(&mut self, pid: u32, queue: u64, extent: Extent) {
        if self.extents.len() >= MAX_QUEUES && !self.extents.contains_key(&(pid, queue)) {
            self.extents.clear();
            self.found.clear();
            self.unfinished.clear();
        }
        self.extents.insert((pid, queue), extent);
    }

    /// Reads the queues of the doorbells so far, and hands over the doorbells with their packets, in the order of their times. Those
    /// of processes that `wait` stay for a later call.
    pub fn flush(&mut self, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>), wait: impl Fn(u32) -> bool) {
        if self.rung.is_empty() && self.unfinished.is_empty() {
            return;
        }
        let has_room = self.rung.len() < MAX_WAITING;
        let wait = |pid| has_room && wait(pid);
        // In place, and in their order.
        self.waiting
            .extend(self.rung.extract_if(.., |rung| wait(rung.origin.pid)));
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..self.rung.len());
        // Doorbells of one queue stay in their order.
        order.sort_by_key(|&at| self.rung[at].key());
        let mut rest = order.as_slice();
        let mut turn = (0, Instant::now());
        while let Some(&first) = rest.first() {
            let key = self.rung[first].key();
            if turn.0 != key.0 {
                turn = (key.0, Instant::now());
            }
            let (group, later) = rest.split_at(rest.partition_point(|&at| self.rung[at].key() <= key));
            if self.packets.len() < MAX_PACKETS_AT_ONCE && turn.1.elapsed() < PATIENCE {
                self.read_group(key, group, memory);
            }
            rest = later;
        }
        self.order = order;
        for rung in &self.rung {
            self.hand_over(rung, sink);
        }
        self.read_due(Instant::now(), memory, sink);
        self.rung.clear();
        self.rung.append(&mut self.waiting);
        self.copied.clear();
        self.packets.clear();
    }

    /// Reads the queue of a group of doorbells, and divides what was read among them.
    fn read_group(&mut self, key: (u32, At), group: &[usize], memory: &mut impl Fetch) {
        let values = || group.iter().map(|&at| self.rung[at].value);
        let (lowest, highest) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        let was_found = self.found.contains_key(&key);
        let mut before = self.copied.len();
        let mut result = self.read_queue(key, lowest, highest, memory);
        if matches!(result, Err(Failed::Replaced)) {
            self.found.remove(&key);
            before = self.copied.len();
            result = self.read_queue(key, lowest, highest, memory);
        }
        let (found, whole, now, is_new) = match result {
            Ok(read) => read,
            Err(failed @ (Failed::NoDoorbell | Failed::SignalUnread)) if !was_found => {
                self.signals_unread += u64::from(matches!(failed, Failed::SignalUnread)) * group.len() as u64;
                group.iter().for_each(|&at| self.rung[at].walk = Walk::NoDoorbell);
                return;
            }
            // What was a doorbell before was one when it was rung.
            Err(_) => return,
        };
        let copies = (before, self.copied.len());
        let mut lowest = u64::MAX;
        for &at in group.iter().rev() {
            lowest = lowest.min(self.rung[at].value);
            self.rung[at].lowest = lowest;
        }
        let mut first = whole.first;
        for (place, &at) in group.iter().enumerate() {
            let rung = &mut self.rung[at];
            let own = rung.value.saturating_add(1);
            let is_last = place + 1 == group.len();
            let end = if is_last {
                whole.end
            } else {
                own.clamp(first, whole.end)
            };
            rung.walk = Walk::Done {
                found,
                range: Range {
                    first,
                    end,
                    beyond: whole.beyond && own > whole.end,
                },
                then: Indexes {
                    read: now.read.min(rung.lowest),
                    ..now
                },
                is_new: is_new && place == 0,
                copies,
            };
            first = end;
        }
        if let Some(&last) = group.last() {
            self.note_unfinished(self.rung[last], found.queue, whole.end, Duration::ZERO);
        }
    }

    /// Reads a queue's packets for doorbells with these lowest and highest values.
    fn read_queue(
        &mut self,
        key: (u32, At),
        lowest: u64,
        highest: u64,
        memory: &mut impl Fetch,
    ) -> Result<(Found, Range, Indexes, bool), Failed> {
        let (pid, at) = key;
        let found = match self.found.get(&key) {
            Some(found) => *found,
            None => find(pid, at, memory)?,
        };
        if self.found.len() >= MAX_QUEUES && !self.found.contains_key(&key) {
            self.found.clear();
        }
        self.found.insert(key, found);
        let known = self.extents.get(&(pid, found.queue)).copied();
        let size = u64::from(found.size);
        // Without a look at the indexes, unless they decide what is worth reading.
        let plain = known.filter(|extent| highest.saturating_add(1).max(extent.max).saturating_sub(extent.low) <= size);
        let mut extent;
        let mut range;
        match plain {
            Some(known) => {
                extent = known;
                let end = highest.saturating_add(1).max(extent.max).max(extent.low);
                range = Range {
                    first: extent.low,
                    end,
                    beyond: false,
                };
            }
            None => {
                let now = head(pid, found.queue, memory).ok_or(Failed::Unread)?.1;
                extent = known.unwrap_or_else(|| Extent::adopted(lowest, now));
                range = extent.range(highest, found.size, now);
            }
        }
        let mut now = None;
        let mut from = range.first;
        let mut again = AGAIN;
        loop {
            let end = range.end.min(from.saturating_add(AT_ONCE));
            let (before, after) = self.copy((pid, at), &found, from, end, memory)?;
            if now.is_none() {
                // What is not there any more by now is left out.
                let current = extent.range(highest, found.size, before);
                range.first = current.first.clamp(range.first, range.end);
                extent.low = range.first;
                now = Some(before);
            }
            if let Some(copied) = self.copied.last() {
                let packets = &self.packets[copied.at..];
                extent.note(copied.first, packets, before.read, after.limit(found.size), found.size);
            }
            from = end;
            if from < range.end {
                continue;
            }
            // The GPU took a packet between the read of its index and the copy of its slot. Only another copy shows that the slot
            // was not empty before.
            if again == 0 || extent.low >= after.read.min(range.end) {
                break;
            }
            again -= 1;
            from = extent.low;
        }
        self.remember(pid, found.queue, extent);
        Ok((found, range, now.unwrap_or_default(), known.is_none()))
    }

    /// Copies packets `first` to `end`, which may be none. Returns the indexes before and after the copy.
    fn copy(
        &mut self,
        (pid, at): (u32, At),
        found: &Found,
        first: u64,
        end: u64,
        memory: &mut impl Fetch,
    ) -> Result<(Indexes, Indexes), Failed> {
        let (size, place) = (u64::from(found.size), self.packets.len());
        let count = end.saturating_sub(first);
        self.packets.resize(place + count as usize, Packet::ZERO);
        self.earlier.resize(count as usize, Packet::ZERO);
        // A run of packets may go around the ring's end.
        let slot = first & (size - 1);
        let to_end = count.min(size - slot) as usize;
        let (run, rest) = self.packets[place..].split_at_mut(to_end);
        let (earlier_run, earlier_rest) = self.earlier.split_at_mut(to_end);
        let (mut signal, mut owner, mut head, mut after) = ([0; 8], [0; 8], [0; HEAD_LEN], [0; INDEXES]);
        let mut wanted = Vec::with_capacity(8);
        if let At::Pointer(pointer) = at {
            wanted.push((pointer, &mut signal[..]));
        }
        wanted.push((found.signal.wrapping_add(SIGNAL_QUEUE_PTR as u64), &mut owner[..]));
        wanted.push((found.queue, &mut head[..]));
        for (run, rest) in [(earlier_run, earlier_rest), (run, rest)] {
            if !run.is_empty() {
                wanted.push((found.base.wrapping_add(slot * PACKET_LEN as u64), bytes_of(run)));
            }
            if !rest.is_empty() {
                wanted.push((found.base, bytes_of(rest)));
            }
        }
        wanted.push((found.queue.wrapping_add(WRITE_DISPATCH_ID as u64), &mut after[..]));
        let is_there = memory.fetch(pid, &mut wanted);
        let is_same = |bytes: &[u8], expected: u64| word(bytes, 0) == Some(expected);
        let is_pointer = matches!(at, At::Pointer(_));
        if !is_there {
            self.packets.truncate(place);
            // The signal may be gone, and another one may be at its place.
            return Err(Failed::Replaced);
        }
        let is_other = is_pointer && !is_same(&signal, found.signal) || !is_same(&owner, found.queue);
        let (ring, before) = parse(&head);
        if is_other || ring != Some((found.base, found.size)) {
            self.packets.truncate(place);
            return Err(Failed::Replaced);
        }
        complete::keep_headers(&mut self.packets[place..], &self.earlier);
        let after = Indexes {
            write: word(&after, 0).unwrap_or(0),
            read: word(&after, READ_DISPATCH_ID - WRITE_DISPATCH_ID).unwrap_or(0),
        };
        self.copied.push(Copied {
            first,
            end,
            read_index: before.read,
            limit: after.limit(found.size),
            at: place,
        });
        Ok((before, after))
    }

    /// Hands over a doorbell and its packets.
    fn hand_over(&self, rung: &Rung, sink: &mut impl FnMut(&Event<'_>)) {
        let mut doorbell = Doorbell::unreadable(rung.origin, rung.value);
        match rung.walk {
            Walk::NoDoorbell => return,
            Walk::Unread => {}
            Walk::Done {
                found,
                range,
                then,
                is_new,
                copies,
            } => {
                doorbell = Doorbell {
                    handle: found.queue,
                    first: range.first,
                    end: range.end,
                    read_index: then.read,
                    write_index: then.write,
                    ring_base: found.base,
                    ring_packets: found.size,
                    unreadable: false,
                    beyond: range.beyond,
                    ..doorbell
                };
                if is_new {
                    // The model takes a queue that it did not know from the read index on, and that of the copy is too high.
                    sink(&Event::Doorbell(doorbell));
                }
                self.hand_over_packets(rung, &found, range, copies, sink);
                if is_new {
                    return;
                }
            }
        }
        sink(&Event::Doorbell(doorbell));
    }

    fn hand_over_packets(
        &self,
        rung: &Rung,
        found: &Found,
        range: Range,
        copies: (usize, usize),
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        for copied in self.copied.get(copies.0..copies.1).unwrap_or_default() {
            let (first, end) = (range.first.max(copied.first), range.end.min(copied.end));
            if first >= end {
                continue;
            }
            let at = copied.at + (first - copied.first) as usize;
            let packets = &self.packets[at..at + (end - first) as usize];
            for (packets, first) in packets
                .chunks(PACKETS_PER_RECORD)
                .zip((first..).step_by(PACKETS_PER_RECORD))
            {
                let indexes = (copied.read_index, copied.limit);
                sink(&Event::Packets(Packets {
                    value: rung.value,
                    ..Packets::of_slots(rung.origin, found.queue, found.size, indexes, first, packets)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests;
