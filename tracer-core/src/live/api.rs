//! Calls of HIP, HSA and OpenCL functions.

use std::collections::BTreeMap;

use super::picture::ApiRow;
use super::rate::Rate;
use crate::tables::{ApiCall, ApiStats};
use crate::tally::{Histogram, bounded, more};

/// Number of functions that are distinguished; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;
/// Number of counters that are distinguished. The programs have fewer.
const MAX_COUNTERS: usize = 65_536;

/// Calls by layer and function.
#[derive(Debug, Default)]
pub struct Api {
    /// Calls that were recorded one by one.
    recorded: BTreeMap<Function, Recorded>,
    /// Calls that were only counted, by counter: each process has its own for each function.
    counted: BTreeMap<u32, Counted>,
}

/// A layer, and the name of a function in it.
type Function = (String, String);

#[derive(Debug, Default)]
struct Recorded {
    /// Calls by the time of their end.
    rate: Rate,
    errors: u64,
    times: Histogram,
}

/// A counter.
#[derive(Debug)]
struct Counted {
    last: ApiStats,
    /// The calls by the time of the sample. Unknown at the first sample: a trace has only the sums of its whole time.
    rate: Option<Rate>,
}

impl Api {
    /// Counts a call. It comes when it ends.
    pub fn add(&mut self, call: &ApiCall) {
        let key = (call.layer.clone().into_owned(), call.function.clone().into_owned());
        let Some(function) = bounded(&mut self.recorded, &key, MAX_FUNCTIONS) else {
            return;
        };
        function.rate.add(call.exit_ns.unwrap_or(call.enter_ns), 1);
        function.errors += u64::from(call.failed == Some(true));
        let duration = call.exit_ns.map(|exit_ns| exit_ns.saturating_sub(call.enter_ns));
        function.times.add_known(duration);
    }

    /// Takes the counts of a counter so far.
    pub fn sample(&mut self, stats: &ApiStats) {
        if let Some(counted) = self.counted.get_mut(&stats.counter) {
            let new = stats.calls.saturating_sub(counted.last.calls);
            let rate = counted.rate.get_or_insert_with(|| {
                let mut rate = Rate::default();
                rate.add(counted.last.time_ns, counted.last.calls);
                rate
            });
            rate.add(stats.time_ns, new);
            counted.last = stats.clone();
        } else if self.counted.len() < MAX_COUNTERS {
            let last = stats.clone();
            self.counted.insert(stats.counter, Counted { last, rate: None });
        }
    }

    /// Returns the functions that were called, the longest in sum first.
    pub fn rows(&self, now: u64) -> Vec<ApiRow> {
        let mut all: BTreeMap<Function, (ApiRow, Histogram)> = BTreeMap::new();
        for (key, calls) in &self.recorded {
            let count = calls.rate.total();
            let row = ApiRow {
                count,
                per_s: Some(calls.rate.per_second(now)),
                errors: calls.errors,
                unreturned: count.saturating_sub(calls.times.count()),
                ..ApiRow::of(key)
            };
            all.insert(key.clone(), (row, calls.times.clone()));
        }
        for Counted { last, rate } in self.counted.values().filter(|counted| counted.last.calls > 0) {
            let key = (last.layer.clone().into_owned(), last.function.clone().into_owned());
            let entry = || {
                let row = ApiRow {
                    per_s: Some(0.0),
                    ..ApiRow::of(&key)
                };
                (row, Histogram::default())
            };
            let (row, times) = all.entry(key.clone()).or_insert_with(entry);
            more(&mut row.count, last.calls);
            more(&mut row.errors, last.failed);
            more(&mut row.unreturned, last.calls.saturating_sub(last.returned));
            row.per_s = row
                .per_s
                .zip(rate.as_ref())
                .map(|(sum, rate)| sum + rate.per_second(now));
            times.add_buckets(&last.durations.0, last.min_ns, last.max_ns, last.total_ns);
        }
        let rows = all.into_values().map(|(row, times)| {
            let stats = times.stats();
            ApiRow {
                total_ns: stats.map(|stats| stats.total),
                mean_ns: stats.map(|stats| stats.total / times.count()),
                ns: stats.map(|stats| (stats.p50, stats.p99)),
                ..row
            }
        });
        let mut rows: Vec<ApiRow> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }
}

impl ApiRow {
    /// Returns the row of a function of which nothing else is known.
    fn of((layer, function): &Function) -> Self {
        Self {
            layer: layer.clone(),
            function: function.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::tables::Durations;

    const S: u64 = 1_000_000_000;

    fn call(function: &'static str, enter_ns: u64, exit_ns: Option<u64>, failed: Option<bool>) -> ApiCall {
        ApiCall {
            tid: 7,
            exit_ns,
            function: function.into(),
            ret: failed.map(i64::from),
            failed,
            ..sample::api_call(1, (enter_ns, 0))
        }
    }

    fn stats(counter: u32, time_ns: u64, calls: u64, returned: u64) -> ApiStats {
        ApiStats {
            counter,
            pid: Some(7),
            time_ns,
            layer: "hip".into(),
            function: "hipEventQuery".into(),
            calls,
            returned,
            failed: 1,
            left: 0,
            total_ns: returned * 100,
            min_ns: Some(100),
            max_ns: Some(100),
            durations: Durations(vec![(103, returned)]),
        }
    }

    #[test]
    fn calls_are_summed_by_function_and_what_did_not_return_has_no_time() {
        let mut api = Api::default();
        api.add(&call("hipMalloc", 5 * S, Some(5 * S + 300), Some(false)));
        api.add(&call("hipMalloc", 5 * S, Some(5 * S + 101), Some(true)));
        api.add(&call("hipMalloc", 5 * S, Some(5 * S + 101), Some(true)));
        api.add(&call("hipMalloc", 5 * S, None, None));
        api.add(&call("hipFree", 5 * S, None, None));
        let rows = api.rows(5 * S + S / 2);
        let [malloc, free] = &rows[..] else { panic!("{rows:?}") };
        let expected = ApiRow {
            layer: "hip".to_owned(),
            function: "hipMalloc".to_owned(),
            count: 4,
            per_s: Some(4.0),
            errors: 2,
            unreturned: 1,
            total_ns: Some(502),
            mean_ns: Some(167),
            // The bucket of 101 ns ends there.
            ns: Some((101, 300)),
        };
        assert_eq!(*malloc, expected);
        assert_eq!(
            (free.count, free.total_ns, free.mean_ns, free.ns),
            (1, None, None, None)
        );
    }

    #[test]
    fn counters_of_several_processes_are_one_row_and_repeated_samples_change_nothing() {
        let mut api = Api::default();
        api.sample(&stats(1, 5 * S, 10, 9));
        api.sample(&stats(2, 5 * S, 4, 4));
        let row = &api.rows(5 * S)[0];
        assert_eq!((row.count, row.errors, row.unreturned), (14, 2, 1));
        assert_eq!(
            (row.total_ns, row.mean_ns, row.ns),
            (Some(1300), Some(100), Some((100, 100)))
        );
        assert_eq!(row.per_s, None, "one sample is the sum of any time");
        for _ in 0..2 {
            api.sample(&stats(1, 5 * S, 10, 9));
            api.sample(&stats(2, 5 * S + 1, 6, 6));
        }
        let row = &api.rows(5 * S + 1)[0];
        assert_eq!((row.count, row.per_s), (16, Some(16.0)));
        assert_eq!(api.rows(9 * S)[0].per_s, Some(0.0));
    }

    #[test]
    fn functions_that_were_not_called_have_no_row() {
        let mut api = Api::default();
        api.sample(&stats(1, S, 0, 0));
        assert_eq!(api.rows(S), []);
    }
}
