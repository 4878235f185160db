//! Counts of calls of driver functions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tables::DriverCall;
use crate::tally::{Histogram, Stats};

/// Number of functions that are distinguished; there are about thirty.
const MAX_FUNCTIONS: usize = 1024;

/// Calls of functions of the kernel driver. A number that could not be observed is `None` (`null`), never 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverCalls {
    /// All calls; `None` if no function was watched.
    pub total: Option<u64>,
    /// Calls by function; functions that were not called are omitted.
    pub by_function: BTreeMap<String, Function>,
}

/// Calls of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    functions: BTreeMap<String, (u64, u64, Histogram)>,
}

impl Counter {
    pub(super) fn add(&mut self, call: &DriverCall) {
        self.total += 1;
        if !self.functions.contains_key(&call.function) {
            if self.functions.len() >= MAX_FUNCTIONS {
                return;
            }
            self.functions.insert(call.function.clone(), Default::default());
        }
        if let Some((count, traced, ns)) = self.functions.get_mut(&call.function) {
            *count += 1;
            *traced += u64::from(call.traced);
            ns.add(call.exit_ns.saturating_sub(call.enter_ns));
        }
    }

    pub(super) fn report(self, watched: bool) -> DriverCalls {
        let function = |(name, (count, traced, ns)): (String, (u64, u64, Histogram))| {
            let ns = ns.stats();
            (name, Function { count, traced, ns })
        };
        DriverCalls {
            total: watched.then_some(self.total),
            by_function: self.functions.into_iter().map(function).collect(),
        }
    }
}
