//! Calls that are only counted: counters of each function in each process, in memory that user space maps.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use tracer_common::api::{
    Cookie, FUNCTIONS,
    stats::{self, PAIRS, PLACES, WORDS, word},
};

use crate::{
    atomic,
    maps::{Current, MMAPABLE, NO_EXIST},
};

/// Places, as `tracer_common::api::stats` describes them.
#[map]
static API_STATS: Array<u64> = Array::with_max_entries((PLACES * WORDS) as u32, MMAPABLE);

/// The place of each function of a process, by `stats::owner`.
#[map]
static API_PLACES: HashMap<u64, u32> = HashMap::with_max_entries(PAIRS as u32, 0);

/// The number of assigned places.
#[map]
static API_GIVEN: Array<u64> = Array::with_max_entries(1, 0);

/// Returns the place of a function in the current process: its own, or the place shared by all processes for which none was left.
#[inline(always)]
pub fn place(current: &Current, cookie: Cookie) -> u64 {
    let owner = stats::owner(current.tgid, cookie.function());
    // SAFETY: an entry is one word, which is never changed.
    if let Some(place) = unsafe { API_PLACES.get(owner) } {
        return u64::from(*place);
    }
    match give(owner) {
        Some(place) => u64::from(place),
        None => u64::from(cookie.function()),
    }
}

#[inline(always)]
fn give(owner: u64) -> Option<u32> {
    let given = API_GIVEN.get_ptr_mut(0)?;
    // SAFETY: a map's value, which only this function changes. It is read first, so that the number does not grow forever.
    let number = unsafe {
        if given.read_volatile() >= PAIRS as u64 {
            return None;
        }
        atomic::add(given, 1)
    };
    if number >= PAIRS as u64 {
        return None;
    }
    let place = FUNCTIONS.len() as u32 + number as u32;
    if API_PLACES.insert(owner, place, NO_EXIST).is_err() {
        // Another thread of the process was first; the place that this thread reserved stays empty.
        // SAFETY: as in `place`.
        return unsafe { API_PLACES.get(owner) }.copied();
    }
    let word = API_STATS.get_ptr_mut(place * WORDS as u32 + word::OWNER)?;
    // SAFETY: a map's value, which no other program writes, because the place is this owner's.
    unsafe { word.write_volatile(owner) };
    Some(place)
}

/// Counts the entry of a call.
#[inline(always)]
pub fn entered(place: u64) {
    add(place, word::CALLS, 1);
}

/// Counts a call that was left without a return. It has no duration.
#[inline(always)]
pub fn left(place: u64) {
    add(place, word::LEFT, 1);
}

/// Counts the return of a call.
#[inline(always)]
pub fn returned(place: u64, failed: bool, ns: u64) {
    stats::returned(ns, failed, |at, n| add(place, at, n), |at, n| raise(place, at, n));
}

#[inline(always)]
fn add(place: u64, at: u32, n: u64) {
    if let Some(word) = API_STATS.get_ptr_mut(place as u32 * WORDS as u32 + at) {
        // SAFETY: a map's value, which programs change only by functions like this.
        unsafe { atomic::add(word, n) };
    }
}

#[inline(always)]
fn raise(place: u64, at: u32, n: u64) {
    if let Some(word) = API_STATS.get_ptr_mut(place as u32 * WORDS as u32 + at) {
        // SAFETY: as above.
        unsafe { atomic::raise(word, n) };
    }
}
