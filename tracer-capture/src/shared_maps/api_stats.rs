//! API calls that the programs count instead of recording them, read without disturbing the programs.
//!
//! The counters are mapped, so that reading them needs no system call for a map: see `losses.rs`.

use std::{borrow::Cow, sync::atomic::Ordering};

use aya::maps::Map;
use tracer_common::api::{
    FUNCTIONS,
    stats::{Counts, PLACES, WORDS, of_owner, word},
};
use tracer_core::tables::{self, Durations};

use crate::{
    CaptureError,
    shared_maps::words::{Access, SharedWords},
};

/// The map API_STATS, shared with the kernel.
pub struct ApiStats {
    words: SharedWords,
}

const BYTES: usize = PLACES * WORDS * size_of::<u64>();

impl ApiStats {
    /// Maps the counters.
    ///
    /// # Errors
    /// Returns the error of the mapping.
    pub fn new(map: &Map) -> Result<Self, CaptureError> {
        let words = SharedWords::new(map, "API_STATS", BYTES, Access::Read)?;
        Ok(Self { words })
    }

    /// Hands over the numbers of every place that has counted a call.
    pub fn report(&self, time_ns: u64, sink: &mut impl FnMut(&tables::ApiStats)) {
        for place in 0..PLACES {
            // Later words are read later.
            let read = |at: u32| self.words.word(place * WORDS + at as usize).load(Ordering::Acquire);
            if let Some(stats) = stats_of(time_ns, place, read) {
                sink(&stats);
            }
        }
    }
}

/// Returns the numbers of a place; `None` if it counted nothing, or its owner is not known yet.
fn stats_of(time_ns: u64, place: usize, read: impl Fn(u32) -> u64) -> Option<tables::ApiStats> {
    if read(word::CALLS) == 0 {
        return None;
    }
    let (pid, function) = of_owner(place, read(word::OWNER))?;
    let mut durations = Vec::new();
    let counts = Counts::read(read, |end, count| durations.push((end, count)));
    let function = FUNCTIONS.get(function)?;
    let some = |ns: u64| (counts.returned > 0).then_some(ns);
    Some(tables::ApiStats {
        counter: u32::try_from(place).ok()?,
        pid,
        time_ns,
        layer: Cow::Borrowed(function.layer.name()),
        function: Cow::Borrowed(function.name),
        calls: counts.calls,
        returned: counts.returned,
        failed: counts.failed,
        left: counts.left,
        total_ns: counts.total_ns,
        min_ns: some(counts.min_ns),
        max_ns: some(counts.max_ns),
        durations: Durations(durations),
    })
}

#[cfg(test)]
mod tests {
    use tracer_common::api::stats::owner;

    use super::*;

    /// A place whose words are 0 except these.
    fn place<'a>(words: &'a [(u32, u64)]) -> impl Fn(u32) -> u64 + 'a {
        |at| {
            words
                .iter()
                .find(|(word, _)| *word == at)
                .map_or(0, |(_, value)| *value)
        }
    }

    #[test]
    fn a_place_of_a_process_and_one_of_all_others() {
        let words = [
            (word::OWNER, owner(77, 3)),
            (word::CALLS, 4),
            (word::FAILED, 1),
            (word::TOTAL_NS, 21),
            (word::NOT_MIN_NS, !5),
            (word::MAX_NS, 9),
            (word::BUCKETS + 5, 1),
            (word::BUCKETS + 8, 2),
        ];
        let stats = stats_of(6, FUNCTIONS.len() + 2, place(&words)).expect("calls were counted");
        assert_eq!(
            (stats.pid, &*stats.function, stats.time_ns),
            (Some(77), FUNCTIONS[3].name, 6)
        );
        assert_eq!((stats.calls, stats.returned, stats.failed), (4, 3, 1));
        assert_eq!((stats.total_ns, stats.min_ns, stats.max_ns), (21, Some(5), Some(9)));
        assert_eq!(stats.durations.0, [(5, 1), (8, 2)]);
        let others = stats_of(6, 2, place(&[(word::CALLS, 1)])).expect("a call was counted");
        assert_eq!(
            (others.pid, &*others.function, others.returned, others.min_ns),
            (None, FUNCTIONS[2].name, 0, None)
        );
    }

    #[test]
    fn what_counted_nothing_or_is_nobodys_yet_is_left_out() {
        assert_eq!(stats_of(6, 2, place(&[])), None);
        assert_eq!(stats_of(6, FUNCTIONS.len(), place(&[(word::CALLS, 1)])), None);
    }
}
