//! API calls, and what links a submission to one.
//!
//! An event of a doorbell names the innermost call that its thread was in. A doorbell publishes what its own thread has
//! written, but also packets of other threads that have not rung yet. So the call is a packet's only if the packet is the
//! thread's: the one that the doorbell's value names, or one of an index that the thread reserved.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tracer_common::api::Returns;

use crate::event;
use crate::fact::{self, Fact};

/// Open calls that are kept. A call whose record was lost stays open: the oldest are forgotten.
const MAX_OPEN: usize = 65536;

/// What was submitted in calls that have not ended yet.
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
    /// Counts what a fact says was submitted in a call.
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

    /// A call ends: its row. What was submitted in it was submitted in the call around it, too.
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

/// Counters of calls that are kept; the programs have fewer.
const MAX_COUNTERS: usize = 65_536;

/// What was counted of calls, by counter.
#[derive(Debug, Default)]
pub(super) struct Counted {
    last: BTreeMap<u32, fact::ApiStats>,
}

impl Counted {
    /// Takes what was counted by now. Numbers that did not change keep the time at which they were found.
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

    /// As it is now.
    pub(super) fn iter(&self) -> impl Iterator<Item = &fact::ApiStats> {
        self.last.values()
    }

    /// The trace ends.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        std::mem::take(&mut self.last)
            .into_values()
            .for_each(|row| out(Fact::ApiStats(row)));
    }
}

/// Links a dispatch of a walk to the call in which its doorbell was rung, until it shows whether that is sure.
pub(super) fn link(fact: &mut Fact, call: Option<event::InCall>) {
    if let Fact::Dispatch(dispatch) = fact {
        dispatch.api_call = call.map(|call| call.call);
        dispatch.stream = call.and_then(|call| call.stream);
    }
}

/// Takes the link from a dispatch that may be another thread's: whose reserve is not known, and that its doorbell's value
/// does not name.
pub(super) fn keep_what_is_sure(fact: &mut Fact, value: Option<u64>) {
    if let Fact::Dispatch(dispatch) = fact
        && dispatch.reserve_ns.is_none()
        && value != Some(dispatch.index)
    {
        (dispatch.api_call, dispatch.stream) = (None, None);
    }
}
