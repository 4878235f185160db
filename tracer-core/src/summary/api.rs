//! Counts of API calls.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::tables::{ApiCall, ApiStats};
use crate::tally::{Histogram, Stats};

/// Number of functions that are distinguished; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;
/// Number of pairs of stream and queue that are distinguished. Addresses of streams come from the traced process, which could
/// invent them.
const MAX_STREAMS: usize = 65536;

/// Calls of functions of HIP and HSA. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCalls {
    /// All calls; `None` if no function was watched.
    pub total: Option<u64>,
    /// Whether the calls were counted instead of recorded one by one. If so, the submissions in them are unknown, and the
    /// percentiles of their times are at most 12.5 % too high. `None` if no function was watched.
    pub counted_only: Option<bool>,
    /// Calls by function; functions that were not called are omitted.
    pub by_function: BTreeMap<String, ApiFunction>,
}

/// Calls of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiFunction {
    /// `hip` or `hsa`.
    pub layer: String,
    /// Calls.
    pub count: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Calls whose return was not seen: they have neither a result nor a time. Calls that were open at the end are among them
    /// only if calls were counted.
    pub unreturned: u64,
    /// Dispatches whose doorbells were rung in the calls, nested calls included; `None` if the calls were only counted.
    pub dispatches: Option<u64>,
    /// SDMA submissions in the calls, in the same way.
    pub copies: Option<u64>,
    /// Time in the call; `None` if no call returned.
    pub ns: Option<Stats>,
}

/// A queue on which work of a stream was seen. The number is that of the queue in `queues`, which has its KFD id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamQueue {
    /// Process.
    pub pid: u32,
    /// The `hipStream_t`; 0 is the default stream.
    pub stream: u64,
    /// Number of the queue in the trace.
    pub queue: u32,
    /// Dispatches and SDMA submissions.
    pub submissions: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    total: u64,
    functions: BTreeMap<String, Function>,
    streams: HashMap<(u32, u64, u32), u64>,
}

#[derive(Clone, Debug, Default)]
struct Function {
    layer: String,
    count: u64,
    errors: u64,
    unreturned: u64,
    /// Dispatches and copies, if the calls were recorded.
    submitted: Option<(u64, u64)>,
    ns: Histogram,
}

impl Counter {
    pub(super) fn add(&mut self, call: &ApiCall) {
        self.total += 1;
        let Some(function) = self.function(&call.layer, &call.function) else {
            return;
        };
        function.count += 1;
        function.errors += u64::from(call.failed == Some(true));
        let (dispatches, copies) = function.submitted.unwrap_or_default();
        function.submitted = Some((
            dispatches.saturating_add(call.dispatches),
            copies.saturating_add(call.copies),
        ));
        match call.exit_ns {
            Some(exit_ns) => function.ns.add(exit_ns.saturating_sub(call.enter_ns)),
            None => function.unreturned += 1,
        }
    }

    /// Adds calls that were only counted.
    pub(super) fn add_stats(&mut self, stats: &ApiStats) {
        self.total = self.total.saturating_add(stats.calls);
        if stats.calls == 0 {
            return;
        }
        let Some(function) = self.function(&stats.layer, &stats.function) else {
            return;
        };
        function.count = function.count.saturating_add(stats.calls);
        function.errors = function.errors.saturating_add(stats.failed);
        let unreturned = stats.calls.saturating_sub(stats.returned);
        function.unreturned = function.unreturned.saturating_add(unreturned);
        let (min, max) = (stats.min_ns, stats.max_ns);
        function.ns.add_buckets(&stats.durations.0, min, max, stats.total_ns);
    }

    /// Returns the function with this name; `None` if it is beyond the limit.
    fn function(&mut self, layer: &str, name: &str) -> Option<&mut Function> {
        if !self.functions.contains_key(name) {
            if self.functions.len() >= MAX_FUNCTIONS {
                return None;
            }
            let function = Function {
                layer: layer.to_owned(),
                ..Function::default()
            };
            self.functions.insert(name.to_owned(), function);
        }
        self.functions.get_mut(name)
    }

    /// Counts a submission for a stream, on a queue.
    pub(super) fn submission(&mut self, pid: u32, stream: Option<u64>, queue: Option<u32>) {
        let (Some(stream), Some(queue)) = (stream, queue) else {
            return;
        };
        let key = (pid, stream, queue);
        if self.streams.len() < MAX_STREAMS || self.streams.contains_key(&key) {
            *self.streams.entry(key).or_default() += 1;
        }
    }

    pub(super) fn streams(&self) -> Vec<StreamQueue> {
        let mut streams: Vec<StreamQueue> = self
            .streams
            .iter()
            .map(|(&(pid, stream, queue), &submissions)| StreamQueue {
                pid,
                stream,
                queue,
                submissions,
            })
            .collect();
        streams.sort_by_key(|s| (s.pid, s.stream, s.queue));
        streams
    }

    /// Returns the counts. `recorded` says whether calls were recorded one by one, `counted` whether they were counted.
    pub(super) fn report(self, recorded: bool, counted: bool) -> ApiCalls {
        let watched = recorded || counted;
        let function = |(name, f): (String, Function)| {
            let calls = ApiFunction {
                layer: f.layer,
                count: f.count,
                errors: f.errors,
                unreturned: f.unreturned,
                dispatches: f.submitted.map(|(dispatches, _)| dispatches),
                copies: f.submitted.map(|(_, copies)| copies),
                ns: f.ns.stats(),
            };
            (name, calls)
        };
        ApiCalls {
            total: watched.then_some(self.total),
            counted_only: watched.then_some(!recorded),
            by_function: self.functions.into_iter().map(function).collect(),
        }
    }
}
