//! Counts of trace events of the driver.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fact::DriverEvent;

/// Events that are told apart; the tracer knows five, and a trace of a newer one may hold more.
const MAX_EVENTS: usize = 256;

/// Trace events of the driver itself. A number that could not be observed is `None` (`null`), never 0.
///
/// They are no jobs: those are in [`super::RingJobs`], which amdgpu_cs_ioctl and amdgpu_sched_run_job tell of once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverEvents {
    /// All of them, of every process and of the driver itself; `None` if none of the events was watched.
    pub total: Option<u64>,
    /// By name; those that did not come are left out, whether they were watched (see the trace's probes) or not.
    pub by_event: BTreeMap<String, DriverEventCount>,
}

/// Events of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverEventCount {
    /// How many came.
    pub count: u64,
    /// Those in the context of a traced process; `None` if the event's context says nothing.
    pub traced: Option<u64>,
    /// Bytes of the buffers that they tell of, together; `None` if they don't tell.
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
        if !self.events.contains_key(&event.event) {
            if self.events.len() >= MAX_EVENTS {
                return;
            }
            self.events.insert(event.event.clone(), DriverEventCount::default());
        }
        if let Some(count) = self.events.get_mut(&event.event) {
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

/// Sums what is told; what never is stays unknown.
fn add(sum: &mut Option<u64>, n: Option<u64>) {
    if let Some(n) = n {
        *sum = Some(sum.unwrap_or(0).saturating_add(n));
    }
}
