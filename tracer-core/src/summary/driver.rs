//! Counts of calls of driver functions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::DriverCall;
use crate::tally::{Histogram, Stats, bounded};

/// Number of functions that are distinguished; there are about thirty.
const MAX_FUNCTIONS: usize = 1024;

/// Calls of functions of the kernel driver. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverCalls {
    /// All calls; `None` if no function was watched.
    pub total: Option<u64>,
    /// Calls by function; functions that were not called are omitted.
    pub by_function: BTreeMap<String, Function>,
}

/// Calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Calls.
    pub count: u64,
    /// Calls by traced processes.
    pub traced: u64,
    /// Time in the call.
    pub ns: Option<Stats>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    total: u64,
    functions: BTreeMap<String, (Function, Histogram)>,
}

impl Counter {
    pub(super) fn add(&mut self, call: &DriverCall) {
        self.total += 1;
        if let Some((calls, times)) = bounded(&mut self.functions, &call.function, MAX_FUNCTIONS) {
            calls.count += 1;
            calls.traced += u64::from(call.traced);
            times.add(call.exit_ns.saturating_sub(call.enter_ns));
        }
    }

    pub(super) fn report(self, watched: bool) -> DriverCalls {
        let mut by_function = BTreeMap::new();
        for (name, (calls, times)) in self.functions {
            let ns = times.stats();
            by_function.insert(name, Function { ns, ..calls });
        }
        DriverCalls {
            total: watched.then_some(self.total),
            by_function,
        }
    }
}
