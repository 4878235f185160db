//! API calls, and the link from a submission to a call.
//!
//! A doorbell event gives the innermost call of its thread. A doorbell publishes the packets of its own thread, but also packets of
//! other threads that have not rung yet. So a packet is linked to the call only if the packet belongs to the thread: if the
//! doorbell's value names it, or if the thread reserved its index.

use std::collections::BTreeMap;

use crate::event;
use crate::tables::{ApiCall, ApiStats, Fact};

/// Largest number of open calls kept. A call whose record was lost stays open, so the oldest open calls are forgotten.
const MAX_OPEN: usize = 65536;

/// Submissions in calls that have not ended yet.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    submitted: BTreeMap<u64, Submitted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Submitted {
    dispatches: u64,
    copies: u64,
}

impl OpenCalls {
    /// Counts the submission that a fact reports for a call.
    pub(super) fn count(&mut self, fact: &Fact) {
        let (call, dispatches, copies) = match fact {
            Fact::Dispatch(dispatch) => (dispatch.api_call, 1, 0),
            Fact::Copy(copy) => (copy.api_call, 0, 1),
            _ => return,
        };
        if let Some(call) = call {
            self.add(call, Submitted { dispatches, copies });
        }
    }

    /// Counts copies by kernels for a call, whose dispatches it counts already.
    pub(super) fn copies(&mut self, call: u64, copies: u64) {
        if copies > 0 {
            self.add(call, Submitted { dispatches: 0, copies });
        }
    }

    fn add(&mut self, call: u64, more: Submitted) {
        if self.submitted.len() >= MAX_OPEN && !self.submitted.contains_key(&call) {
            self.submitted.pop_first();
        }
        let submitted = self.submitted.entry(call).or_default();
        submitted.dispatches = submitted.dispatches.saturating_add(more.dispatches);
        submitted.copies = submitted.copies.saturating_add(more.copies);
    }

    /// Ends a call and returns its row, with its submissions. They also count for the enclosing call.
    pub(super) fn end(&mut self, call: &ApiCall) -> ApiCall {
        let submitted = self.submitted.remove(&call.call);
        if let (Some(parent), Some(submitted)) = (call.parent, submitted) {
            self.add(parent, submitted);
        }
        let Submitted { dispatches, copies } = submitted.unwrap_or_default();
        ApiCall {
            dispatches,
            copies,
            ..call.clone()
        }
    }
}

/// Largest number of counters kept. The programs have fewer.
const MAX_COUNTERS: usize = 65_536;

/// The counts of calls, by counter.
#[derive(Debug, Default)]
pub(super) struct Counted {
    last: BTreeMap<u32, ApiStats>,
}

impl Counted {
    /// Takes the counts so far. Counts that did not change keep the time at which they were first seen.
    pub(super) fn apply(&mut self, stats: &ApiStats) {
        let counts = |stats: &ApiStats| (stats.calls, stats.returned, stats.failed, stats.left, stats.total_ns);
        let take = match self.last.get(&stats.counter) {
            Some(last) => counts(last) != counts(stats),
            None => self.last.len() < MAX_COUNTERS,
        };
        if take {
            self.last.insert(stats.counter, stats.clone());
        }
    }

    /// Returns the current counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ApiStats> {
        self.last.values()
    }

    /// Ends the trace: reports all counts.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        std::mem::take(&mut self.last)
            .into_values()
            .for_each(|row| out(Fact::ApiStats(row)));
    }
}

/// Links a dispatch of a walk to the call in which its doorbell was rung, until the doorbell shows whether the link is certain.
pub(super) fn link(fact: &mut Fact, call: Option<event::InCall>) {
    if let Fact::Dispatch(dispatch) = fact {
        dispatch.api_call = call.map(|call| call.call);
        dispatch.stream = call.and_then(|call| call.stream);
    }
}

/// Removes the link from a dispatch that may belong to another thread: one whose reserve is unknown, and that its doorbell's value
/// does not name.
pub(super) fn keep_what_is_sure(fact: &mut Fact, value: Option<u64>) {
    if let Fact::Dispatch(dispatch) = fact
        && dispatch.reserve_ns.is_none()
        && value != Some(dispatch.index)
    {
        (dispatch.api_call, dispatch.stream) = (None, None);
    }
}
