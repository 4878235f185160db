//! API calls, and the link from a submission to a call.
//!
//! A doorbell event gives the innermost call of its thread. A doorbell publishes the packets of its own thread, but also packets of
//! other threads that have not rung yet. So a packet is linked to the call only if the packet belongs to the thread: if the
//! doorbell's value names it, or if the thread reserved its index.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tracer_common::api::Returns;

use crate::event;
use crate::fact::{self, Fact};

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
        match fact {
            Fact::Dispatch(fact::Dispatch {
                api_call: Some(call), ..
            }) => self.add(
                *call,
                Submitted {
                    dispatches: 1,
                    copies: 0,
                },
            ),
            Fact::Copy(fact::Copy {
                api_call: Some(call), ..
            }) => self.add(
                *call,
                Submitted {
                    dispatches: 0,
                    copies: 1,
                },
            ),
            _ => {}
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

    /// Ends a call and returns its row. Its submissions also count for the enclosing call.
    pub(super) fn end(&mut self, event: &event::ApiCall) -> fact::ApiCall {
        let submitted = self.submitted.remove(&event.call);
        if let (Some(parent), Some(submitted)) = (event.parent, submitted) {
            self.add(parent, submitted);
        }
        let submitted = submitted.unwrap_or_default();
        let function = event.function;
        fact::ApiCall {
            call: event.call,
            parent: event.parent,
            pid: event.origin.pid,
            tid: event.origin.tid,
            enter_ns: event.origin.time_ns,
            exit_ns: event.returned.map(|(exit_ns, _)| exit_ns),
            layer: Cow::Borrowed(function.layer.name()),
            function: Cow::Borrowed(function.name),
            ret: event.returned.map(|(_, ret)| match function.returns {
                Returns::Status => i64::from(ret as u32),
                Returns::Value => ret,
            }),
            failed: event.returned.map(|(_, ret)| function.failed(ret)),
            stream: event.stream,
            bytes: event.bytes,
            object: event.object,
            dispatches: submitted.dispatches,
            copies: submitted.copies,
        }
    }
}

/// Largest number of counters kept. The programs have fewer.
const MAX_COUNTERS: usize = 65_536;

/// The counts of calls, by counter.
#[derive(Debug, Default)]
pub(super) struct Counted {
    last: BTreeMap<u32, fact::ApiStats>,
}

impl Counted {
    /// Takes the counts so far. Counts that did not change keep the time at which they were first seen.
    pub(super) fn apply(&mut self, event: &event::ApiStats) {
        let counts = event.counts;
        if let Some(last) = self.last.get(&event.counter) {
            let before = (last.calls, last.returned, last.failed, last.left, last.total_ns);
            if before
                == (
                    counts.calls,
                    counts.returned,
                    counts.failed,
                    counts.left,
                    counts.total_ns,
                )
            {
                return;
            }
        } else if self.last.len() >= MAX_COUNTERS {
            return;
        }
        let some = |ns: u64| (counts.returned > 0).then_some(ns);
        let row = fact::ApiStats {
            counter: event.counter,
            pid: event.pid,
            time_ns: event.time_ns,
            layer: Cow::Borrowed(event.function.layer.name()),
            function: Cow::Borrowed(event.function.name),
            calls: counts.calls,
            returned: counts.returned,
            failed: counts.failed,
            left: counts.left,
            total_ns: counts.total_ns,
            min_ns: some(counts.min_ns),
            max_ns: some(counts.max_ns),
            durations: event.durations.clone(),
        };
        self.last.insert(event.counter, row);
    }

    /// Returns the current counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &fact::ApiStats> {
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
