//! Matches reserves with packets: the last few reserves of each thread on one queue.
//!
//! A reserve probe sees the entry of a write index advance, not its result: `Add { n }` entered at write index `w` reserved
//! `s..s + n` for some `s >= w`, greater than `w` if another producer advanced the index in between. The doorbell that the thread
//! rings afterwards shows the place: its value is the last index that the thread wrote. So the model resolves reserves at
//! doorbells. The dispatches that the doorbell's walk delivered just before wait here until then.

use std::collections::VecDeque;

use crate::event::{Doorbell, Origin, Reserve, ReserveOp};
use crate::model::api;
use crate::tables::Fact;

/// Largest number of threads remembered per queue. Beyond it, the thread that was idle longest is forgotten.
const MAX_THREADS: usize = 64;
/// Largest number of reserves remembered per thread. The model does not wait for a thread that reserves this often without ringing.
const MAX_OPEN: usize = 8;
/// Largest number of facts that wait for one thread's doorbell: a walk over the largest ring that HIP creates.
const MAX_WAITING: usize = 16384;

/// The threads that reserved packets of one queue.
#[derive(Debug, Default)]
pub(super) struct Reserves {
    /// Sorted by use, the most recently used last.
    threads: Vec<Thread>,
}

/// One thread's reserves on one queue.
#[derive(Debug, Default)]
pub(super) struct Thread {
    tid: u32,
    /// Reserves without a doorbell so far, oldest first.
    open: VecDeque<Open>,
    /// Time of the last doorbell.
    rung_ns: Option<u64>,
    /// Reserves resolved by the last doorbell that resolved any.
    rung: Vec<Covered>,
    /// Facts of a walk whose doorbell event has not arrived yet.
    waiting: Vec<Fact>,
}

/// A reserve that no doorbell has resolved.
#[derive(Clone, Copy, Debug)]
struct Open {
    time_ns: u64,
    /// Its lowest possible first index: the write index at entry.
    lowest: Option<u64>,
    n: u64,
    /// One past its last index, if the operation itself says so.
    end: Option<u64>,
}

/// Indexes `first..end` were reserved at `time_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Covered {
    first: u64,
    end: u64,
    time_ns: u64,
}

/// Returns a fact whose doorbell did not arrive. No index is known to belong to its thread.
fn unlinked(mut fact: Fact) -> Fact {
    api::keep_what_is_sure(&mut fact, None);
    fact
}

impl Open {
    fn new(event: &Reserve) -> Option<Self> {
        let w = event.write_index;
        let (lowest, n, end) = match event.op {
            ReserveOp::Add { n } => (w, n, None),
            // If the write index is unknown, only the last stored index certainly belongs to the caller.
            ReserveOp::Store { to } => (w, w.map_or(to.min(1), |w| to.saturating_sub(w)), Some(to)),
            ReserveOp::Cas { from, to } => (Some(from), to.saturating_sub(from), Some(to)),
        };
        (n > 0).then_some(Self {
            time_ns: event.origin.time_ns,
            lowest,
            n,
            end,
        })
    }

    /// Returns the indexes that it covers, given that the thread published `value` after it, and the write index at that time; and
    /// whether the doorbell published all of them.
    fn resolve(&self, value: u64, write_index: u64) -> Option<(Covered, bool)> {
        let after = value.checked_add(1)?;
        // No other producer advanced the index in between: the write index is where this reserve alone would have moved it.
        let alone = self
            .lowest
            .and_then(|w| w.checked_add(self.n))
            .filter(|&end| end == write_index);
        if let Some(end) = self.end.or(alone) {
            let first = end.saturating_sub(self.n);
            return (first <= value).then(|| (self.covered(first, end.min(after)), end <= after));
        }
        let lowest = self.lowest.unwrap_or(0);
        match after.checked_sub(self.n) {
            Some(first) if first >= lowest => Some((self.covered(first, after), true)),
            // The doorbell is in the middle of a batch. Only its own packet certainly belongs to the batch.
            _ if lowest <= value => Some((self.covered(value, after), false)),
            _ => None,
        }
    }

    fn covered(&self, first: u64, end: u64) -> Covered {
        let time_ns = self.time_ns;
        Covered { first, end, time_ns }
    }

    /// Returns the indexes that it covers, given that the thread's next reserve begins at `next`.
    fn resolve_before(&self, next: u64) -> Option<Covered> {
        let end = self
            .end
            .or_else(|| self.lowest?.checked_add(self.n).filter(|&end| end == next))?;
        (end <= next).then(|| self.covered(end.saturating_sub(self.n), end))
    }
}

impl Thread {
    /// Returns whether a dispatch of a walk at `origin` must wait for the doorbell event of that walk.
    pub(super) fn awaits_doorbell(&self, origin: Origin) -> bool {
        // Packets that the collector reads after a doorbell have that doorbell's origin. No doorbell event follows them.
        !self.open.is_empty() && self.rung_ns != Some(origin.time_ns)
    }

    /// Sets the reserve time of a dispatch, if the thread's last resolving doorbell gave it.
    pub(super) fn date(&self, fact: &mut Fact) {
        if let Fact::Dispatch(dispatch) = fact
            && let Some(covered) = self.rung.iter().find(|c| (c.first..c.end).contains(&dispatch.index))
        {
            dispatch.reserve_ns = Some(covered.time_ns);
            dispatch.unreserved_ns = None;
        }
    }

    /// Keeps a fact until the thread's doorbell.
    pub(super) fn keep(&mut self, fact: Fact, out: &mut impl FnMut(Fact)) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.drain(..).map(unlinked).for_each(&mut *out);
        }
        self.waiting.push(fact);
    }

    /// Processes a doorbell of the thread: resolves its reserves and reports the facts that waited. Returns the time of the reserve
    /// that the doorbell belongs to, if known.
    pub(super) fn ring(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) -> Option<u64> {
        self.rung_ns = Some(event.origin.time_ns);
        let time_ns = self.resolve(event);
        let mut waiting = std::mem::take(&mut self.waiting);
        for mut fact in waiting.drain(..) {
            self.date(&mut fact);
            api::keep_what_is_sure(&mut fact, Some(event.value));
            out(fact);
        }
        self.waiting = waiting;
        time_ns
    }

    fn resolve(&mut self, event: &Doorbell) -> Option<u64> {
        // A value that no producer has reserved does not show which reserve the doorbell belongs to.
        if event.beyond {
            return None;
        }
        // Take the youngest reserve that the value can belong to. Younger reserves belong to a later doorbell.
        let (at, (covered, whole)) = self
            .open
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, open)| Some((at, open.resolve(event.value, event.write_index)?)))?;
        self.rung.clear();
        self.rung.push(covered);
        // Resolve older reserves while their place is certain.
        let mut next = covered.first;
        self.rung.extend(self.open.range(..at).rev().map_while(|open| {
            let covered = open.resolve_before(next)?;
            next = covered.first;
            Some(covered)
        }));
        self.open.drain(..at + usize::from(whole));
        Some(covered.time_ns)
    }
}

impl Reserves {
    /// Processes a reserve of a thread.
    pub(super) fn reserve(&mut self, event: &Reserve, out: &mut impl FnMut(Fact)) {
        let Some(open) = Open::new(event) else { return };
        let thread = self.last_used(event.origin.tid, out);
        if thread.open.len() >= MAX_OPEN {
            thread.open.pop_front();
        }
        thread.open.push_back(open);
    }

    /// Returns the state of a thread.
    pub(super) fn thread(&mut self, tid: u32) -> Option<&mut Thread> {
        self.threads.iter_mut().rev().find(|thread| thread.tid == tid)
    }

    /// Reports every fact that still waits.
    pub(super) fn flush(&mut self, out: &mut impl FnMut(Fact)) {
        self.threads
            .drain(..)
            .flat_map(|thread| thread.waiting)
            .map(unlinked)
            .for_each(out);
    }

    fn last_used(&mut self, tid: u32, out: &mut impl FnMut(Fact)) -> &mut Thread {
        let thread = match self.threads.iter().rposition(|thread| thread.tid == tid) {
            Some(at) => self.threads.remove(at),
            None => {
                if self.threads.len() >= MAX_THREADS {
                    self.threads.remove(0).waiting.into_iter().map(unlinked).for_each(out);
                }
                Thread {
                    tid,
                    ..Thread::default()
                }
            }
        };
        self.threads.push_mut(thread)
    }
}
