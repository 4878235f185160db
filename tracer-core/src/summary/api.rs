//! Counts of API calls.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Histogram, Stats};
use crate::fact::{ApiCall, ApiStats};

/// Functions that are told apart; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;
/// Pairs of stream and queue that are told apart. Streams' addresses come from the traced process, which could invent them.
const MAX_STREAMS: usize = 65536;

/// Calls of functions of HIP and HSA. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCalls {
    /// All of them; `None` if no function was watched.
    pub total: Option<u64>,
    /// Whether they were counted, and not recorded one by one: then it is not known what was submitted in them, and the
    /// percentiles of their times are at most 12.5 % too high. `None` if no function was watched.
    pub counted_only: Option<bool>,
    /// By function; functions that were not called are left out.
    pub by_function: BTreeMap<String, ApiFunction>,
}

/// Calls of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiFunction {
    /// `hip` or `hsa`.
    pub layer: String,
    /// Calls.
    pub count: u64,
    /// Those that returned an error.
    pub errors: u64,
    /// Those of which no return was seen: they have neither a result nor a time. Of calls that were open at the end there
    /// are some only where calls were counted.
    pub unreturned: u64,
    /// Dispatches that were rung for in them, calls inside them included; `None` if they were counted only.
    pub dispatches: Option<u64>,
    /// SDMA submissions likewise.
    pub copies: Option<u64>,
    /// Time in the call; `None` if none returned.
    pub ns: Option<Stats>,
}

/// A queue that a stream's work was seen on. The queue's number is that of `queues`, which has its KFD id.
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
    /// Dispatches and copies, if its calls were recorded.
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

    /// Calls that were counted only.
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

    /// The function of that name; `None` if there are too many.
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

    /// A submission for a stream, on a queue.
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

    /// `recorded` and `counted`: whether calls were, one by one, or altogether.
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
