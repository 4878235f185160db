//! Completion signals: whose times are those that one holds.
//!
//! A GPU writes when a packet ran into its completion signal, before it takes 1 from the signal's value. A runtime uses a
//! signal again and again, so the times alone do not say whose they are. But the program of a doorbell reads the signal of
//! each packet that it publishes, before the GPU can take it. If the value is 1 there, one completion is to come, and it is
//! that packet's: so runtimes wait for it. What the signal holds later and did not hold then is the packet's time:
//! - at the doorbell of the next packet that uses the signal, or
//! - at any look that finds the value 0: it has ended, and the times were written before.
//!
//! Whatever may have used the signal otherwise ends that: a packet whose publishing was not seen, one that was published
//! while another one was still to end, lost doorbells.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use tracer_common::record::Stamps;

use super::clocks::Stamped;
use crate::event::Signal;
use crate::fact::GpuTime;

/// Signals kept at the most. Their addresses come from the traced process.
const MAX_SIGNALS: usize = 65_536;
/// How long a packet waits for its signal to be used again before somebody looks at it, at the least and at the most.
const SOON_NS: u64 = 20_000_000;
const LATE_NS: u64 = 2_000_000_000;
/// Signals that are asked for at a time.
const MAX_ASKED: usize = 1024;

/// A packet that names a completion signal was published.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) pid: u32,
    /// Handle of the signal.
    pub(super) signal: u64,
    /// Time of the doorbell.
    pub(super) time_ns: u64,
    /// What the signal held before the packet could begin, if nothing else was to use it then; `None` if nobody knows.
    pub(super) before: Option<Stamps>,
    /// `None` for a packet that is no dispatch.
    pub(super) dispatch: Option<Ran>,
}

/// The dispatch.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) queue: u32,
    pub(super) index: u64,
    pub(super) kernel_object: u64,
    pub(super) kernel: Option<Arc<str>>,
    pub(super) gpu_id: Option<u32>,
}

/// The completion signals of all processes.
#[derive(Debug, Default)]
pub(super) struct Signals {
    by_handle: HashMap<(u32, u64), Watched>,
    /// Those to look at: when, and which. One that needs no look any more may still be here.
    due: BinaryHeap<Reverse<(u64, u32, u64)>>,
}

#[derive(Debug, Default)]
struct Watched {
    /// The only packet that is to complete it.
    running: Option<Running>,
    /// Whether it is among those that are due some time.
    is_due: bool,
}

#[derive(Debug)]
struct Running {
    time_ns: u64,
    before: Stamps,
    dispatch: Option<Ran>,
}

impl Signals {
    /// A packet is published.
    pub(super) fn publish(&mut self, used: Use, out: &mut impl FnMut(Stamped)) {
        let key = (used.pid, used.signal);
        if self.by_handle.len() >= MAX_SIGNALS && !self.by_handle.contains_key(&key) {
            self.by_handle.retain(|_, watched| watched.running.is_some());
            if self.by_handle.len() >= MAX_SIGNALS {
                return;
            }
        }
        let watched = self.by_handle.entry(key).or_default();
        let former = watched.running.take();
        let Some(before) = used.before else { return };
        if let Some(former) = former {
            if !is_of_later(former.before, before) {
                // It has not ended: which of the two will have ended when they change?
                return;
            }
            former.ended(used.pid, before, used.time_ns, out);
        }
        watched.running = Some(Running {
            time_ns: used.time_ns,
            before,
            dispatch: used.dispatch,
        });
        if !watched.is_due {
            watched.is_due = true;
            let due = used.time_ns.saturating_add(SOON_NS);
            self.due.push(Reverse((due, used.pid, used.signal)));
        }
    }

    /// Somebody looked at a signal.
    pub(super) fn look(&mut self, look: &Signal, out: &mut impl FnMut(Stamped)) {
        let key = (look.origin.pid, look.state.signal);
        // Before its end nothing is told, and what looks at one that was used again since tells of a former packet.
        let ended = |running: &mut Running| look.state.value == 0 && running.time_ns <= look.origin.time_ns;
        let watched = self.by_handle.get_mut(&key);
        if let Some(running) = watched.and_then(|watched| watched.running.take_if(ended))
            && is_of_later(running.before, look.state.stamps)
        {
            running.ended(look.origin.pid, look.state.stamps, look.after_ns, out);
        }
    }

    /// Those that somebody should look at by now.
    pub(super) fn due(&mut self, now: u64, mut ask: impl FnMut(u32, u64)) {
        let mut asked = 0;
        while asked < MAX_ASKED
            && let Some(&Reverse((due, pid, signal))) = self.due.peek()
            && due <= now
        {
            self.due.pop();
            let Some(watched) = self.by_handle.get_mut(&(pid, signal)) else {
                continue;
            };
            watched.is_due = watched.running.is_some();
            if let Some(running) = &watched.running {
                asked += 1;
                ask(pid, signal);
                let wait = now.saturating_sub(running.time_ns).clamp(SOON_NS, LATE_NS);
                self.due.push(Reverse((now.saturating_add(wait), pid, signal)));
            }
        }
    }

    /// Those that a packet is still to complete, as far as anybody knows.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let all = self.by_handle.iter();
        all.filter(|(_, watched)| watched.running.is_some())
            .map(|(key, _)| *key)
    }

    /// Packets may have been published that nobody saw.
    pub(super) fn lost(&mut self) {
        self.by_handle.clear();
    }

    /// The process's memory is gone.
    pub(super) fn end_process(&mut self, pid: u32) {
        self.by_handle.retain(|(of, _), _| *of != pid);
    }
}

impl Running {
    fn ended(self, pid: u32, stamps: Stamps, seen_ns: u64, out: &mut impl FnMut(Stamped)) {
        let Some(ran) = self.dispatch else { return };
        out(Stamped {
            seen_ns,
            time: GpuTime {
                queue: ran.queue,
                index: ran.index,
                pid,
                time_ns: self.time_ns,
                kernel_object: ran.kernel_object,
                kernel: ran.kernel,
                gpu_id: ran.gpu_id,
                start_ticks: stamps.start,
                end_ticks: stamps.end,
                start_ns: None,
                end_ns: None,
                clock_error_ns: None,
            },
        });
    }
}

/// Whether `now` are the times of a packet, and those of another one than `before`: both were written.
fn is_of_later(before: Stamps, now: Stamps) -> bool {
    let is_time = now.start != 0 && now.start <= now.end;
    is_time && now.start != before.start && now.end != before.end
}

#[cfg(test)]
mod tests;
