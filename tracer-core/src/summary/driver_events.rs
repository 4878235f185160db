//! Counts of trace events of the driver.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tables::DriverEvent;
use crate::tally::{bounded, more};

/// Number of events that are distinguished. tracer knows five, and a trace of a newer version may have more.
const MAX_EVENTS: usize = 256;

/// Trace events of the driver itself. A number that could not be observed is `None` (`null`), never 0.
///
/// They are not jobs. Jobs are in [`super::RingJobs`], and `amdgpu_cs_ioctl` and `amdgpu_sched_run_job` report them a second
/// time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverEvents {
    /// All events, of every process and of the driver itself; `None` if none of the events was watched.
    pub total: Option<u64>,
    /// Events by name. Events that did not occur are omitted, whether they were watched (see the probes of the trace) or not.
    pub by_event: BTreeMap<String, DriverEventCount>,
}

/// Events of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverEventCount {
    /// Number of events.
    pub count: u64,
    /// Events in the context of a traced process; `None` if the context of the event says nothing.
    pub traced: Option<u64>,
    /// Total bytes of the buffers that the events name; `None` if they name none.
    pub bytes: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    total: u64,
    events: BTreeMap<String, DriverEventCount>,
}

impl Counter {
    pub(super) fn add(&mut self, event: &DriverEvent) {
        self.total += 1;
        if let Some(count) = bounded(&mut self.events, &*event.event, MAX_EVENTS) {
            count.count += 1;
            add(&mut count.traced, event.traced.map(u64::from));
            add(&mut count.bytes, event.bytes);
        }
    }

    pub(super) fn report(self, watched: bool) -> DriverEvents {
        DriverEvents {
            total: watched.then_some(self.total),
            by_event: self.events,
        }
    }
}

/// Adds a number, if it is known. A sum without any known number stays unknown.
fn add(sum: &mut Option<u64>, n: Option<u64>) {
    if let Some(n) = n {
        more(sum.get_or_insert(0), n);
    }
}
