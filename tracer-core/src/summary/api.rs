//! Counts of API calls.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{Histogram, Stats};
use crate::fact::ApiCall;

/// Functions that are told apart; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;
/// Pairs of stream and queue that are told apart. Streams' addresses come from the traced process, which could invent them.
const MAX_STREAMS: usize = 65536;

/// Calls of functions of HIP and HSA. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCalls {
    /// All of them; `None` if no function was watched.
    pub total: Option<u64>,
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
    /// Dispatches that were rung for in them, calls inside them included.
    pub dispatches: u64,
    /// SDMA submissions likewise.
    pub copies: u64,
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
    dispatches: u64,
    copies: u64,
    ns: Histogram,
}

impl Counter {
    pub(super) fn add(&mut self, call: &ApiCall) {
        self.total += 1;
        if !self.functions.contains_key(call.function.as_ref()) {
            if self.functions.len() >= MAX_FUNCTIONS {
                return;
            }
            let function = Function {
                layer: call.layer.clone().into_owned(),
                ..Function::default()
            };
            self.functions.insert(call.function.clone().into_owned(), function);
        }
        if let Some(function) = self.functions.get_mut(call.function.as_ref()) {
            function.count += 1;
            function.errors += u64::from(call.failed == Some(true));
            function.dispatches = function.dispatches.saturating_add(call.dispatches);
            function.copies = function.copies.saturating_add(call.copies);
            if let Some(exit_ns) = call.exit_ns {
                function.ns.add(exit_ns.saturating_sub(call.enter_ns));
            }
        }
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

    pub(super) fn report(self, watched: bool) -> ApiCalls {
        let function = |(name, f): (String, Function)| {
            let calls = ApiFunction {
                layer: f.layer,
                count: f.count,
                errors: f.errors,
                dispatches: f.dispatches,
                copies: f.copies,
                ns: f.ns.stats(),
            };
            (name, calls)
        };
        ApiCalls {
            total: watched.then_some(self.total),
            by_function: self.functions.into_iter().map(function).collect(),
        }
    }
}
