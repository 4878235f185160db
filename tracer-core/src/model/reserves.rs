//! Which reserve covers which packet: the last few reserves of each thread on one queue.
//!
//! A reserve probe sees the entry of a write index advance, not its result: `Add { n }` entered at write index `w` got
//! `s..s + n` for some `s >= w`, later than `w` if another producer slipped in. The doorbell that the thread rings
//! afterwards says where: its value is the last index that the thread wrote. So reserves are resolved at doorbells, and
//! the dispatches that the doorbell's walk delivered just before wait here until then.

use std::collections::VecDeque;

use super::api;
use crate::event::{Doorbell, Origin, Reserve, ReserveOp};
use crate::fact::Fact;

/// Threads remembered a queue; above it the one that was idle longest is forgotten.
const MAX_THREADS: usize = 64;
/// Reserves remembered a thread: a thread that reserves this often without ringing is not waited for.
const MAX_OPEN: usize = 8;
/// Facts that wait for one thread's doorbell at the most: a walk over the rings that HIP makes.
const MAX_HELD: usize = 16384;

/// The threads that reserved packets of one queue.
#[derive(Debug, Default)]
pub(super) struct Reserves {
    /// Most recently used last.
    threads: Vec<Thread>,
}

/// One thread's reserves on one queue.
#[derive(Debug, Default)]
pub(super) struct Thread {
    tid: u32,
    /// Not rung yet, oldest first.
    open: VecDeque<Open>,
    /// Time of the last doorbell.
    rung_ns: Option<u64>,
    /// What the last doorbell that resolved reserves resolved.
    rung: Vec<Covered>,
    /// Facts of a walk whose doorbell event is still to come.
    held: Vec<Fact>,
}

/// A reserve that no doorbell has resolved.
#[derive(Clone, Copy, Debug)]
struct Open {
    time_ns: u64,
    /// Where it begins at the lowest: the write index at entry.
    lowest: Option<u64>,
    n: u64,
    /// One past its last index, where the operation itself says so.
    end: Option<u64>,
}

/// Indexes `first..end` were reserved at `time_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Covered {
    first: u64,
    end: u64,
    time_ns: u64,
}

/// A fact whose doorbell did not come: no index is known to be its thread's own.
fn unlinked(mut fact: Fact) -> Fact {
    api::keep_what_is_sure(&mut fact, None);
    fact
}

impl Open {
    fn new(event: &Reserve) -> Option<Self> {
        let (time_ns, w) = (event.origin.time_ns, event.write_index);
        let open = match event.op {
            ReserveOp::Add { n } => Self {
                time_ns,
                lowest: w,
                n,
                end: None,
            },
            // Where the write index was is unknown: of what was stored, only the last index is surely the caller's.
            ReserveOp::Store { to } => {
                let n = w.map_or(to.min(1), |w| to.saturating_sub(w));
                Self {
                    time_ns,
                    lowest: w,
                    n,
                    end: Some(to),
                }
            }
            ReserveOp::Cas { from, to } => Self {
                time_ns,
                lowest: Some(from),
                n: to.saturating_sub(from),
                end: Some(to),
            },
        };
        (open.n > 0).then_some(open)
    }

    /// What it covers, given that the thread published `value` after it, and the write index then; and whether the
    /// doorbell published all of it.
    fn resolve(&self, value: u64, write_index: u64) -> Option<(Covered, bool)> {
        let time_ns = self.time_ns;
        let after = value.checked_add(1)?;
        // Nobody slipped in: the write index is where this reserve alone would have moved it.
        let alone = self
            .lowest
            .and_then(|w| w.checked_add(self.n))
            .filter(|&end| end == write_index);
        if let Some(end) = self.end.or(alone) {
            let first = end.saturating_sub(self.n);
            return (first <= value).then_some((
                Covered {
                    first,
                    end: end.min(after),
                    time_ns,
                },
                end <= after,
            ));
        }
        let lowest = self.lowest.unwrap_or(0);
        match after.checked_sub(self.n) {
            Some(first) if first >= lowest => Some((
                Covered {
                    first,
                    end: after,
                    time_ns,
                },
                true,
            )),
            // A doorbell in the middle of a batch: only its own packet is surely the batch's.
            _ if lowest <= value => Some((
                Covered {
                    first: value,
                    end: after,
                    time_ns,
                },
                false,
            )),
            _ => None,
        }
    }

    /// What it covers, given that the thread's next reserve begins at `next`.
    fn resolve_before(&self, next: u64) -> Option<Covered> {
        let end = self
            .end
            .or_else(|| self.lowest?.checked_add(self.n).filter(|&end| end == next))?;
        (end <= next).then(|| Covered {
            first: end.saturating_sub(self.n),
            end,
            time_ns: self.time_ns,
        })
    }
}

impl Thread {
    /// Whether a dispatch of a walk at `origin` must wait for the doorbell event of that walk.
    pub(super) fn awaits_doorbell(&self, origin: Origin) -> bool {
        // What the collector reads after a doorbell carries that doorbell's origin: nothing follows it.
        !self.open.is_empty() && self.rung_ns != Some(origin.time_ns)
    }

    /// The time of the reserve that covers `index`, if the thread's last resolving doorbell said so.
    fn reserved_at(&self, index: u64) -> Option<u64> {
        self.rung
            .iter()
            .find(|c| (c.first..c.end).contains(&index))
            .map(|c| c.time_ns)
    }

    /// Says when a dispatch was reserved, if the thread's last resolving doorbell told.
    pub(super) fn date(&self, fact: &mut Fact) {
        if let Fact::Dispatch(dispatch) = fact
            && let Some(reserve_ns) = self.reserved_at(dispatch.index)
        {
            dispatch.reserve_ns = Some(reserve_ns);
            dispatch.unreserved_ns = None;
        }
    }

    /// Keeps a fact until the thread's doorbell.
    pub(super) fn hold(&mut self, fact: Fact, out: &mut impl FnMut(Fact)) {
        if self.held.len() >= MAX_HELD {
            self.held.drain(..).map(unlinked).for_each(&mut *out);
        }
        self.held.push(fact);
    }

    /// The thread rings: resolves its reserves and lets go of what waited for that. Time of the reserve rung for.
    fn ring(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) -> Option<u64> {
        self.rung_ns = Some(event.origin.time_ns);
        // A value that nobody reserved says nothing about which reserve it is for.
        let time_ns = if event.beyond {
            None
        } else {
            self.resolve(event.value, event.write_index)
        };
        let mut held = std::mem::take(&mut self.held);
        for mut fact in held.drain(..) {
            self.date(&mut fact);
            api::keep_what_is_sure(&mut fact, Some(event.value));
            out(fact);
        }
        self.held = held;
        time_ns
    }

    fn resolve(&mut self, value: u64, write_index: u64) -> Option<u64> {
        // The youngest that the value can belong to; younger ones are for a later doorbell.
        let (at, (covered, whole)) = self
            .open
            .iter()
            .enumerate()
            .rev()
            .find_map(|(at, open)| Some((at, open.resolve(value, write_index)?)))?;
        self.rung.clear();
        self.rung.push(covered);
        // Older ones, as long as it is sure where they lie.
        let mut next = covered.first;
        for covered in self.open.range(..at).rev().map_while(|open| {
            let covered = open.resolve_before(next)?;
            next = covered.first;
            Some(covered)
        }) {
            self.rung.push(covered);
        }
        self.open.drain(..at + usize::from(whole));
        Some(covered.time_ns)
    }
}

impl Reserves {
    /// A thread reserves.
    pub(super) fn reserve(&mut self, event: &Reserve, out: &mut impl FnMut(Fact)) {
        let Some(open) = Open::new(event) else { return };
        let thread = self.last_used(event.origin.tid, out);
        if thread.open.len() >= MAX_OPEN {
            thread.open.pop_front();
        }
        thread.open.push_back(open);
    }

    /// A thread rings. Time of the reserve that it rings for, if known.
    pub(super) fn ring(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) -> Option<u64> {
        self.thread(event.origin.tid)?.ring(event, out)
    }

    /// What is known of a thread.
    pub(super) fn thread(&mut self, tid: u32) -> Option<&mut Thread> {
        self.threads.iter_mut().rev().find(|thread| thread.tid == tid)
    }

    /// Lets go of everything that still waits.
    pub(super) fn flush(&mut self, out: &mut impl FnMut(Fact)) {
        self.threads
            .drain(..)
            .flat_map(|thread| thread.held)
            .map(unlinked)
            .for_each(out);
    }

    fn last_used(&mut self, tid: u32, out: &mut impl FnMut(Fact)) -> &mut Thread {
        let last = self.threads.len().saturating_sub(1);
        match self.threads.iter().rposition(|thread| thread.tid == tid) {
            Some(at) if at == last => {}
            Some(at) => self.threads[at..].rotate_left(1),
            None => {
                if self.threads.len() >= MAX_THREADS {
                    self.threads.remove(0).held.into_iter().map(unlinked).for_each(out);
                }
                self.threads.push(Thread {
                    tid,
                    ..Thread::default()
                });
            }
        }
        let last = self.threads.len() - 1;
        &mut self.threads[last]
    }
}
