//! How far the packets of each queue were captured.
//!
//! A queue's state is at a place in an array. Whoever knows the number of the place finds the state in some instructions; to find
//! it by the queue's key, in a hash table, takes 150.

use aya_ebpf::{
    macros::map,
    maps::{Array, LruHashMap},
};
use core::ptr::{addr_of, addr_of_mut};
use tracer_common::record::LossSource;

use crate::{
    atomic,
    maps::{Current, NO_EXIST, begin_epoch, lose},
};

/// The key of a queue: its process and the address of its `amd_queue_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct QueueKey {
    pub queue: u64,
    pub tgid: u32,
    /// Generation of the process, so that leftovers of a process that exited are never taken for those of another.
    pub generation: u32,
}

impl QueueKey {
    /// Returns the key of a queue of the process that runs the program.
    #[inline(always)]
    pub fn of(current: Current, queue: u64) -> Self {
        Self {
            queue,
            tgid: current.tgid,
            generation: current.generation,
        }
    }
}

/// The extent of the walks of a queue.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    /// Every lower index was captured, or can no longer be captured. Concurrent programs may set this field and the others back a
    /// little. Then packets are captured twice, which user space notices, and none is skipped.
    pub low: u64,
    /// Every lower index was copied by a finished walk, though perhaps before its producer had written it.
    pub copied: u64,
    /// One past the highest published index.
    pub max: u64,
}

/// The extent of a queue, at its place.
#[repr(C)]
pub struct Walked {
    /// The ticket of the queue that has the place. 0 while the place changes hands.
    ticket: u64,
    /// When the queue was last rung, or began.
    pub used_ns: u64,
    /// Read index at that doorbell. It is at least this now.
    pub read_index: u64,
    pub extent: Extent,
}

/// Places. A power of two.
const PLACES: u32 = 16 << 10;

/// Tickets by queue. A ticket is never given twice, and its lower bits are the number of the place. The queues that were looked up
/// least recently make room.
#[map]
static QUEUES: LruHashMap<QueueKey, u64> = LruHashMap::with_max_entries(PLACES, 0);

/// The states, at their places.
#[map]
static WALKED: Array<Walked> = Array::with_max_entries(PLACES, 0);

/// The number of tickets that were given.
#[map]
static TICKETS: Array<u64> = Array::with_max_entries(1, 0);

/// A place is given to another queue if its queue was not rung for this time: a program that still uses it would have to be
/// interrupted for as long.
const REST_NS: u64 = 1_000_000_000;

/// Attempts to find such a place. If all fail, nearly as many queues are in use as there are places. The queue then has none, which is
/// counted as a loss, and is adopted again at each doorbell: nothing before that is claimed.
const ATTEMPTS: u32 = 16;
/// The distance of the attempts: queues that were created together have places side by side. The attempts are spread over all of the array.
const STRIDE: u64 = PLACES as u64 / ATTEMPTS as u64 - 3;

/// Returns the state of a queue with its ticket.
#[inline(always)]
pub fn find(key: QueueKey) -> Option<(u64, &'static mut Walked)> {
    // SAFETY: an entry is one word, and each of its states is valid.
    let ticket = *unsafe { QUEUES.get(key) }?;
    Some((ticket, with(ticket)?))
}

/// Returns the state of the queue with this ticket, unless its place was given to another queue.
#[inline(always)]
pub fn with(ticket: u64) -> Option<&'static mut Walked> {
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    let walked = unsafe { &mut *WALKED.get_ptr_mut(place(ticket))? };
    walked.is_of(ticket).then_some(walked)
}

/// Returns one past the highest published index of a queue.
#[inline(always)]
pub fn published(key: QueueKey) -> Option<u64> {
    let (ticket, walked) = find(key)?;
    // SAFETY: a field of a valid value; other programs may change it.
    let max = unsafe { addr_of!(walked.extent.max).read_volatile() };
    // It was this queue's.
    walked.is_of(ticket).then_some(max)
}

/// Returns the state of a queue with its ticket. Gives the queue a place if it has none, with this extent; counts a loss if that
/// fails.
#[inline(always)]
pub fn find_or_begin(key: QueueKey, extent: &Extent, now_ns: u64) -> Option<(u64, &'static mut Walked)> {
    let found = find(key).or_else(|| {
        let ticket = begin(&key, extent, now_ns);
        // A place that changes hands has this ticket.
        if ticket == 0 {
            return None;
        }
        Some((ticket, with(ticket)?))
    });
    if found.is_none() {
        lose(LossSource::QueueMap, 1);
    }
    found
}

/// Gives a queue a place. Returns its ticket, or 0 if that fails. A function of its own, to save stack.
#[inline(never)]
fn begin(key: &QueueKey, extent: &Extent, now_ns: u64) -> u64 {
    let Some(ticket) = take(extent, now_ns) else {
        return 0;
    };
    match QUEUES.get_ptr_mut(key) {
        // The queue lost its place. If two programs find that at once, the last one stays.
        // SAFETY: an entry is one word.
        Some(of_queue) => unsafe { of_queue.write_volatile(ticket) },
        // Another program may be faster.
        None => drop(QUEUES.insert(key, ticket, NO_EXIST)),
    }
    // If the queue had a place that its entry no longer led to, objects must not lead to it either.
    begin_epoch();
    // SAFETY: as above.
    unsafe { QUEUES.get(key) }.copied().unwrap_or(0)
}

/// Takes a place. Returns its ticket.
#[inline(always)]
fn take(extent: &Extent, now_ns: u64) -> Option<u64> {
    let given = TICKETS.get_ptr_mut(0)?;
    for attempt in 1..=ATTEMPTS {
        let step = if attempt == 1 { 1 } else { STRIDE };
        // SAFETY: a word of the map, which programs change only here.
        let ticket = unsafe { atomic::add(given, step) } + u64::from(PLACES);
        // SAFETY: a map value stays valid for the program's run; its words are plain integers.
        let walked = unsafe { &mut *WALKED.get_ptr_mut(place(ticket))? };
        if walked.used_ns.wrapping_add(REST_NS) < now_ns {
            // SAFETY: fields of a valid value. Others see that the place changes hands before they can see what it has.
            unsafe {
                addr_of_mut!(walked.ticket).write_volatile(0);
                addr_of_mut!(walked.used_ns).write_volatile(now_ns);
                addr_of_mut!(walked.read_index).write_volatile(0);
                addr_of_mut!(walked.extent).write_volatile(*extent);
                addr_of_mut!(walked.ticket).write_volatile(ticket);
            }
            return Some(ticket);
        }
    }
    None
}

/// Returns the number of a ticket's place.
#[inline(always)]
fn place(ticket: u64) -> u32 {
    ticket as u32 & (PLACES - 1)
}

impl Walked {
    /// Returns whether the place is that of the queue with this ticket.
    #[inline(always)]
    pub fn is_of(&self, ticket: u64) -> bool {
        // SAFETY: a field of a valid value; other programs may change it, so each call reads it.
        unsafe { addr_of!(self.ticket).read_volatile() == ticket }
    }
}
