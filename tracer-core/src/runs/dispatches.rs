//! Runs of dispatches.

use std::collections::HashMap;

use super::{MAX_QUEUES, WINDOW_NS};
use crate::tables::{Dispatch, DispatchRun};

/// Number of open runs of a queue. Several producers publish a few packets out of order: a late packet joins its neighbours.
const MAX_OPEN: usize = 4;
/// How often in [`WINDOW_NS`] a run of a queue may end because the next kernel is another one. Beyond the limit, runs contain
/// several kernels: else a program that alternates between kernels would have as many runs as dispatches.
const MAX_TURNS: u32 = 16;

/// Open runs, by queue.
#[derive(Debug, Default)]
pub(super) struct Dispatches {
    queues: HashMap<u32, Open>,
}

/// Open runs of one queue.
#[derive(Debug, Default)]
struct Open {
    /// The runs, in the order in which they began.
    runs: Vec<DispatchRun>,
    /// Runs that ended because of another kernel, since `since_ns`.
    turns: u32,
    since_ns: u64,
}

impl Dispatches {
    pub(super) fn add(&mut self, dispatch: &Dispatch, out: &mut impl FnMut(DispatchRun)) {
        if self.queues.len() >= MAX_QUEUES && !self.queues.contains_key(&dispatch.queue) {
            self.flush(out);
        }
        self.queues.entry(dispatch.queue).or_default().add(dispatch, out);
    }

    pub(super) fn flush(&mut self, out: &mut impl FnMut(DispatchRun)) {
        self.queues.drain().flat_map(|(_, open)| open.runs).for_each(out);
    }
}

impl Open {
    fn add(&mut self, dispatch: &Dispatch, out: &mut impl FnMut(DispatchRun)) {
        let single = single(dispatch);
        if let Some(at) = self.runs.iter().position(|run| run.takes(&single)) {
            return self.join(at, &single);
        }
        if let Some(at) = self.runs.iter().position(|run| run.takes_as_mixed(&single)) {
            if dispatch.time_ns.saturating_sub(self.since_ns) >= WINDOW_NS {
                (self.turns, self.since_ns) = (0, dispatch.time_ns);
            }
            self.turns = self.turns.saturating_add(1);
            if self.turns > MAX_TURNS {
                return self.join(at, &single);
            }
        }
        if self.runs.len() >= MAX_OPEN {
            out(self.runs.remove(0));
        }
        self.runs.push(single);
    }

    /// Adds a dispatch to a run, and joins the result with the run that it now reaches.
    fn join(&mut self, at: usize, single: &DispatchRun) {
        self.runs[at].join(single);
        let reaches = |other: &usize| *other != at && self.runs[*other].takes(&self.runs[at]);
        if let Some(next) = (0..self.runs.len()).find(reaches) {
            let second = self.runs.remove(at.max(next));
            self.runs[at.min(next)].join(&second);
        }
    }
}

fn single(dispatch: &Dispatch) -> DispatchRun {
    DispatchRun {
        queue: dispatch.queue,
        pid: dispatch.pid,
        path: dispatch.path,
        evidence: dispatch.evidence,
        kernel_object: Some(dispatch.kernel_object),
        kernel: dispatch.kernel.clone(),
        first_index: dispatch.index,
        last_index: dispatch.index,
        count: 1,
        begin_ns: dispatch.time_ns,
        end_ns: dispatch.time_ns,
    }
}

impl DispatchRun {
    /// Returns whether `other`, a run of the same queue, continues this one, and either has the same kernel or this one has
    /// several.
    fn takes(&self, other: &Self) -> bool {
        let same = self.kernel_object == other.kernel_object && self.kernel == other.kernel;
        (same || self.kernel_object.is_none()) && self.takes_as_mixed(other)
    }

    /// Returns the same as [`Self::takes`], whatever the kernels are.
    fn takes_as_mixed(&self, other: &Self) -> bool {
        let follows = |one: u64, other: u64| one.checked_add(1) == Some(other);
        (follows(self.last_index, other.first_index) || follows(other.last_index, self.first_index))
            && (self.pid, self.path, self.evidence) == (other.pid, other.path, other.evidence)
            && self.end_ns.max(other.end_ns) - self.begin_ns.min(other.begin_ns) < WINDOW_NS
    }

    fn join(&mut self, other: &Self) {
        if self.kernel_object != other.kernel_object || self.kernel != other.kernel {
            (self.kernel_object, self.kernel) = (None, None);
        }
        self.first_index = self.first_index.min(other.first_index);
        self.last_index = self.last_index.max(other.last_index);
        self.count += other.count;
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}
