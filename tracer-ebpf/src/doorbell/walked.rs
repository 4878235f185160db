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
    /// Every lower index was captured, or can no longer be captured. Concurrent programs may set this field and `copied` back a
    /// little. Then packets are captured twice, which user space notices, and none is skipped.
    pub low: u64,
    /// Every lower index was copied by a finished walk, though perhaps before its producer had written it.
    pub copied: u64,
    /// One past the highest published index. Never set back: a published index stays published.
    pub max: u64,
}

/// The extent of a queue, at its place.
#[repr(C)]
pub struct Walked {
    /// The ticket of the queue that has the place, or [`CHANGING`], or 0 if no queue ever had it.
    ticket: u64,
    key: QueueKey,
    /// When the queue was last rung, or began.
    used_ns: u64,
    /// Read index at that doorbell. It is at least this now.
    read_index: u64,
    extent: Extent,
}

/// In the place of a ticket: the place is being given to another queue.
const CHANGING: u64 = 1;

/// Places. A power of two.
const PLACES: u32 = 16 << 10;

/// Tickets by queue. A ticket is never given twice, and its lower bits are the number of the place. The queues that were looked up
/// least recently make room. A usual doorbell looks nothing up, but each new epoch begins with one that does.
#[map]
static QUEUES: LruHashMap<QueueKey, u64> = LruHashMap::with_max_entries(PLACES, 0);

/// The states, at their places.
#[map]
static WALKED: Array<Walked> = Array::with_max_entries(PLACES, 0);

/// The number of tickets that were given or passed over.
#[map]
static TICKETS: Array<u64> = Array::with_max_entries(1, 0);

/// A place is given to another queue if its queue was not rung for this time.
const REST_NS: u64 = 1_000_000_000;
/// A place that was used within this time is not given away while a program notes a doorbell, unless the program is interrupted for
/// as long.
const FRESH_NS: u64 = REST_NS / 2;

/// Attempts to find such a place. If all fail, nearly as many queues are in use as there are places. The queue then has none, which is
/// counted as a loss, and is adopted again at each doorbell: nothing before that is claimed.
const ATTEMPTS: u32 = 8;
/// The distance of the attempts: queues that were created together have places side by side. The attempts are spread over all of the array.
const STRIDE: u64 = PLACES as u64 / ATTEMPTS as u64 - 3;

/// Returns the state of a queue with its ticket.
#[inline(always)]
pub fn find(key: &QueueKey) -> Option<(u64, &'static mut Walked)> {
    // SAFETY: an entry is one word, and each of its states is valid.
    let ticket = unsafe { QUEUES.get_ptr(key)?.read_volatile() };
    let walked = with(ticket)?;
    // The kernel may have given the entry to another queue after it was found.
    walked.has(key).then_some((ticket, walked))
}

/// Returns the state of the queue with this ticket, unless its place was given to another queue.
#[inline(always)]
fn with(ticket: u64) -> Option<&'static mut Walked> {
    let walked = at(ticket)?;
    walked.is_of(ticket).then_some(walked)
}

/// Returns what is at the place of this ticket, which may be another queue's by now.
#[inline(always)]
pub fn at(ticket: u64) -> Option<&'static mut Walked> {
    // SAFETY: a map value stays valid for the program's run; its words are plain integers.
    WALKED.get_ptr_mut(place(ticket)).map(|walked| unsafe { &mut *walked })
}

/// Returns one past the highest published index of a queue.
#[inline(always)]
pub fn published(key: &QueueKey) -> Option<u64> {
    let (ticket, walked) = find(key)?;
    Some(walked.read(ticket)?.0.max)
}

/// Returns the state of a queue with its ticket. Gives the queue a place if it has none, with this extent; counts a loss if that
/// fails.
#[inline(always)]
pub fn find_or_begin(key: &QueueKey, extent: &Extent, now_ns: u64) -> Option<(u64, &'static mut Walked)> {
    find(key).or_else(|| {
        let ticket = begin(key, extent, now_ns, Earlier::IsOwn);
        let walked = with(ticket).filter(|walked| walked.has(key));
        if walked.is_none() {
            lose(LossSource::QueueMap, 1);
        }
        Some((ticket, walked?))
    })
}

/// Gives a new queue a place, even if an earlier queue had the same address; counts a loss if that fails.
#[inline(always)]
pub fn begin_new(key: &QueueKey, extent: &Extent, now_ns: u64) {
    if begin(key, extent, now_ns, Earlier::IsOther) == 0 {
        lose(LossSource::QueueMap, 1);
    }
}

/// What a place is that the queue's key leads to already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// The queue's own: it keeps that place.
    IsOwn,
    /// That of an earlier queue at the same address: the queue gets another.
    IsOther,
}

/// Gives a queue a place. Returns its ticket, or 0 if that fails.
///
/// A function of its own, to save stack.
#[inline(never)]
fn begin(key: &QueueKey, extent: &Extent, now_ns: u64, earlier: Earlier) -> u64 {
    let Some(ticket) = take(key, extent, now_ns) else {
        return 0;
    };
    let mut own = ticket;
    if QUEUES.insert(key, ticket, NO_EXIST).is_err() {
        // The queue had a place, or another program was faster. The place that it does not have then rests until another queue takes
        // it.
        let Some(of_queue) = QUEUES.get_ptr_mut(key) else {
            return 0;
        };
        // SAFETY: an entry is one word, and each of its states is valid.
        let seen = unsafe { of_queue.read_volatile() };
        match with(seen) {
            // The kernel has given the entry to another queue.
            Some(walked) if !walked.has(key) => return 0,
            Some(_) if earlier == Earlier::IsOwn => own = seen,
            _ => {
                // SAFETY: as above. If the kernel gives the entry to another queue, it no longer has the ticket that was seen.
                let found = unsafe { atomic::swap(of_queue, seen, ticket) };
                own = if found == seen { ticket } else { found };
            }
        }
    }
    // If the queue had a place that its entry no longer leads to, objects must not lead to it either.
    begin_epoch();
    own
}

/// Takes a place. Returns its ticket.
#[inline(always)]
fn take(key: &QueueKey, extent: &Extent, now_ns: u64) -> Option<u64> {
    let given = TICKETS.get_ptr_mut(0)?;
    for attempt in 1..=ATTEMPTS {
        let step = if attempt == 1 { 1 } else { STRIDE };
        // Above the values that are no tickets.
        // SAFETY: a word of the map, which programs change only here.
        let ticket = unsafe { atomic::add(given, step) } + step + u64::from(PLACES);
        let walked = at(ticket)?;
        if walked.is_resting(now_ns) && walked.claim(now_ns) {
            // SAFETY: fields of a valid value. Others see that the place changes hands before they can see what it has.
            unsafe {
                addr_of_mut!(walked.used_ns).write_volatile(now_ns);
                addr_of_mut!(walked.key).write_volatile(*key);
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

/// Other programs may change a state, so each method reads it anew.
impl Walked {
    /// Returns whether the place is that of the queue with this ticket.
    #[inline(always)]
    pub fn is_of(&self, ticket: u64) -> bool {
        // SAFETY: a field of a valid value.
        unsafe { addr_of!(self.ticket).read_volatile() == ticket }
    }

    /// Returns the extent, and the read index at the last doorbell, unless the place was given to another queue.
    #[inline(always)]
    pub fn read(&self, ticket: u64) -> Option<(Extent, u64)> {
        // SAFETY: fields of a valid value.
        let (extent, read_index) = unsafe {
            (
                addr_of!(self.extent).read_volatile(),
                addr_of!(self.read_index).read_volatile(),
            )
        };
        self.is_of(ticket).then_some((extent, read_index))
    }

    /// Notes a doorbell, unless the place was given to another queue. Then the queue begins again at its next doorbell.
    #[inline(always)]
    pub fn note(&mut self, ticket: u64, extent: &Extent, read_index: u64, now_ns: u64) {
        let used = addr_of_mut!(self.used_ns);
        // Each word is true by itself: see [`Extent`].
        // SAFETY: fields of a valid value. Once the place is this queue's, `max` is changed only here.
        unsafe {
            let used_ns = used.read_volatile();
            if used_ns.wrapping_add(FRESH_NS) < now_ns {
                // Either this program sees that the place was claimed, or who claims it sees that it is used: see `claim`.
                atomic::swap(used, used_ns, now_ns);
                if !self.is_of(ticket) {
                    return;
                }
            } else {
                used.write_volatile(now_ns);
            }
            addr_of_mut!(self.read_index).write_volatile(read_index);
            addr_of_mut!(self.extent.low).write_volatile(extent.low);
            addr_of_mut!(self.extent.copied).write_volatile(extent.copied);
            atomic::raise(addr_of_mut!(self.extent.max), extent.max);
        }
    }

    #[inline(always)]
    fn has(&self, key: &QueueKey) -> bool {
        // SAFETY: a field of a valid value.
        let own = unsafe { addr_of!(self.key).read_volatile() };
        own.queue == key.queue && own.tgid == key.tgid && own.generation == key.generation
    }

    /// Returns whether the queue that has the place was not rung for [`REST_NS`].
    #[inline(always)]
    fn is_resting(&self, now_ns: u64) -> bool {
        // SAFETY: a field of a valid value.
        let used_ns = unsafe { addr_of!(self.used_ns).read_volatile() };
        used_ns.wrapping_add(REST_NS) < now_ns
    }

    /// Takes the place from its queue, if that still rests. Returns whether this program did, and not another.
    #[inline(always)]
    fn claim(&mut self, now_ns: u64) -> bool {
        let word = addr_of_mut!(self.ticket);
        // SAFETY: a field of a valid value. Only the program that claimed the place changes it otherwise.
        unsafe {
            let seen = word.read_volatile();
            if seen == CHANGING || atomic::swap(word, seen, CHANGING) != seen {
                return false;
            }
            // Its queue may have been rung in between.
            let rests = self.is_resting(now_ns);
            if !rests {
                word.write_volatile(seen);
            }
            rests
        }
    }
}
