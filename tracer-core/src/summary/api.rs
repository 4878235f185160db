//! Counts of API calls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::{ApiCall, ApiStats};
use crate::tally::{Histogram, Stats, bounded, more};

/// Number of functions that are distinguished; the catalogue has fewer.
const MAX_FUNCTIONS: usize = 1024;
/// Number of pairs of stream and queue that are distinguished. Addresses of streams come from the traced process, which could
/// invent them.
const MAX_STREAMS: usize = 65536;

/// Calls of functions of HIP, HSA and OpenCL. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiCalls {
    /// All calls; `None` if no function was watched.
    pub total: Option<u64>,
    /// Whether all calls were counted instead of recorded one by one. If so, the submissions in them are unknown, and the
    /// percentiles of their times are at most 12.5 % too high. `None` if no function was watched.
    pub counted_only: Option<bool>,
    /// Calls by function; functions that were not called are omitted.
    pub by_function: BTreeMap<String, ApiFunction>,
}

/// Calls of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiFunction {
    /// `hip`, `hsa` or `opencl`.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    functions: BTreeMap<String, (ApiFunction, Histogram)>,
    /// Submissions by process, stream and queue.
    streams: BTreeMap<(u32, u64, u32), u64>,
}

impl Counter {
    pub(super) fn add(&mut self, call: &ApiCall) {
        self.total += 1;
        let Some((function, times)) = self.function(&call.layer, &call.function) else {
            return;
        };
        function.count += 1;
        function.errors += u64::from(call.failed == Some(true));
        more(function.dispatches.get_or_insert(0), call.dispatches);
        more(function.copies.get_or_insert(0), call.copies);
        match call.exit_ns {
            Some(exit_ns) => times.add(exit_ns.saturating_sub(call.enter_ns)),
            None => function.unreturned += 1,
        }
    }

    /// Adds calls that were only counted.
    pub(super) fn add_stats(&mut self, stats: &ApiStats) {
        more(&mut self.total, stats.calls);
        if stats.calls == 0 {
            return;
        }
        let Some((function, times)) = self.function(&stats.layer, &stats.function) else {
            return;
        };
        more(&mut function.count, stats.calls);
        more(&mut function.errors, stats.failed);
        more(&mut function.unreturned, stats.calls.saturating_sub(stats.returned));
        times.add_buckets(&stats.durations.0, stats.min_ns, stats.max_ns, stats.total_ns);
    }

    /// Returns the function with this name; `None` if it is beyond the limit.
    fn function(&mut self, layer: &str, name: &str) -> Option<&mut (ApiFunction, Histogram)> {
        let function = bounded(&mut self.functions, name, MAX_FUNCTIONS)?;
        if function.0.count == 0 {
            function.0.layer = layer.to_owned();
        }
        Some(function)
    }

    /// Counts a submission for a stream, on a queue.
    pub(super) fn submission(&mut self, pid: u32, stream: Option<u64>, queue: Option<u32>) {
        let (Some(stream), Some(queue)) = (stream, queue) else {
            return;
        };
        if let Some(submissions) = bounded(&mut self.streams, &(pid, stream, queue), MAX_STREAMS) {
            *submissions += 1;
        }
    }

    pub(super) fn streams(&self) -> Vec<StreamQueue> {
        let streams = self.streams.iter();
        streams
            .map(|(&(pid, stream, queue), &submissions)| StreamQueue {
                pid,
                stream,
                queue,
                submissions,
            })
            .collect()
    }

    /// Returns the counts. `recorded` says whether calls were recorded one by one, `counted` whether they were counted.
    pub(super) fn report(self, recorded: bool, counted: bool) -> ApiCalls {
        let watched = recorded || counted;
        let mut by_function = BTreeMap::new();
        for (name, (calls, times)) in self.functions {
            let ns = times.stats();
            by_function.insert(name, ApiFunction { ns, ..calls });
        }
        ApiCalls {
            total: watched.then_some(self.total),
            counted_only: watched.then_some(!recorded),
            by_function,
        }
    }
}
