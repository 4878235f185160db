//! Calls that are counted only: one place a function in memory that user space has mapped.

use aya_ebpf::{macros::map, maps::Array};
use tracer_common::{
    api::{BUCKETS, Cookie, FUNCTIONS, STATS_WORDS, bucket, stats_word as word},
    record::api_flags as flag,
};

use crate::atomic;

/// BPF_F_MMAPABLE of include/uapi/linux/bpf.h.
const MMAPABLE: u32 = 1 << 10;

/// Numbers of each function, as `tracer_common::api::stats_word` names them.
#[map]
static API_STATS: Array<u64> = Array::with_max_entries((FUNCTIONS.len() * STATS_WORDS) as u32, MMAPABLE);

/// Counts a call.
#[inline(always)]
pub fn count(cookie: Cookie, enter_ns: u64, exit_ns: u64, ret: i64, flags: u16) {
    let first = cookie.function() * STATS_WORDS as u32;
    add(first + word::CALLS, 1);
    if flags & flag::NEVER_RETURNED != 0 {
        add(first + word::NEVER_RETURNED, 1);
        return;
    }
    if cookie.failed(ret) {
        add(first + word::ERRORS, 1);
    }
    let ns = exit_ns.saturating_sub(enter_ns);
    add(first + word::SUM_NS, ns);
    raise(first + word::MAX_NS, ns);
    let bucket = bucket(ns) as u32;
    if bucket < BUCKETS as u32 {
        add(first + word::BUCKETS + bucket, 1);
    }
}

#[inline(always)]
fn add(at: u32, n: u64) {
    if let Some(word) = API_STATS.get_ptr_mut(at) {
        // SAFETY: a map's value, which programs change by such functions only.
        unsafe { atomic::add(word, n) };
    }
}

#[inline(always)]
fn raise(at: u32, n: u64) {
    if let Some(word) = API_STATS.get_ptr_mut(at) {
        // SAFETY: as above.
        unsafe { atomic::raise(word, n) };
    }
}
