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

/// Signals of a process that are kept at the most: their addresses come from its memory, and what one process makes up must not
/// cost the others theirs.
const MAX_OF_PROCESS: usize = 65_536;
/// Signals of all processes.
const MAX_SIGNALS: usize = 1 << 20;
/// How long a packet waits for its signal to be used again before somebody looks at it, at the least, and how long between
/// looks at the most.
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

/// The completion signals of all processes that one packet is to complete.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// By process and handle.
    running: HashMap<u32, HashMap<u64, Running>>,
    /// How many there are of all processes.
    count: usize,
    /// Those to look at: when, and which. Only an entry of the time that the signal itself has counts.
    due: BinaryHeap<Reverse<(u64, u32, u64)>>,
}

/// A packet that is the only one to complete its signal.
#[derive(Debug)]
struct Running {
    time_ns: u64,
    before: Stamps,
    dispatch: Option<Ran>,
    /// The time of the signal's entry among those that are due.
    due_ns: u64,
}

impl Signals {
    /// A packet is published.
    pub(super) fn publish(&mut self, used: Use, out: &mut impl FnMut(Stamped)) {
        let former = self.take_if(used.pid, used.signal, |_| true);
        let Some(before) = used.before else { return };
        let mut due_ns = None;
        if let Some(former) = former {
            if !is_of_later(former.before, before) {
                // It has not ended: which of the two will have ended when they change?
                return;
            }
            due_ns = Some(former.due_ns);
            former.ended(used.pid, before, used.time_ns, out);
        }
        let of_process = self.running.entry(used.pid).or_default();
        if of_process.len() >= MAX_OF_PROCESS || self.count >= MAX_SIGNALS {
            return;
        }
        let due_ns = due_ns.unwrap_or_else(|| {
            let due_ns = used.time_ns.saturating_add(SOON_NS);
            self.due.push(Reverse((due_ns, used.pid, used.signal)));
            due_ns
        });
        let running = Running {
            time_ns: used.time_ns,
            before,
            dispatch: used.dispatch,
            due_ns,
        };
        of_process.insert(used.signal, running);
        self.count += 1;
    }

    /// The packet that is to complete a signal, if that is so; it is none any more.
    fn take_if(&mut self, pid: u32, signal: u64, is_so: impl FnOnce(&Running) -> bool) -> Option<Running> {
        let of_process = self.running.get_mut(&pid)?;
        of_process.get(&signal).filter(|running| is_so(running))?;
        let running = of_process.remove(&signal)?;
        self.count -= 1;
        Some(running)
    }

    /// Somebody looked at a signal.
    pub(super) fn look(&mut self, look: &Signal, out: &mut impl FnMut(Stamped)) {
        // Before its end nothing is told, and what looks at one that was used again since tells of a former packet.
        let ended = |running: &Running| look.state.value == 0 && running.time_ns <= look.origin.time_ns;
        if let Some(running) = self.take_if(look.origin.pid, look.state.signal, ended)
            && is_of_later(running.before, look.state.stamps)
        {
            running.ended(look.origin.pid, look.state.stamps, look.after_ns, out);
        }
    }

    /// Those that somebody should look at by now: not those that are used again and again, of which doorbells tell.
    pub(super) fn due(&mut self, now: u64, mut ask: impl FnMut(u32, u64)) {
        let mut asked = 0;
        while asked < MAX_ASKED
            && let Some(&Reverse((due_ns, pid, signal))) = self.due.peek()
            && due_ns <= now
        {
            self.due.pop();
            let of_process = self.running.get_mut(&pid);
            let running = of_process.and_then(|of| of.get_mut(&signal));
            let Some(running) = running.filter(|running| running.due_ns == due_ns) else {
                continue;
            };
            let waits = now.saturating_sub(running.time_ns);
            running.due_ns = if waits < SOON_NS {
                running.time_ns.saturating_add(SOON_NS)
            } else {
                asked += 1;
                ask(pid, signal);
                now.saturating_add(waits.min(LATE_NS))
            };
            self.due.push(Reverse((running.due_ns, pid, signal)));
        }
    }

    /// Those that a packet is still to complete, as far as anybody knows.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let each = self.running.iter();
        each.flat_map(|(&pid, of)| of.keys().map(move |&signal| (pid, signal)))
    }

    /// Packets of any process may have been published that nobody saw.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }

    /// Packets of the process may have been taken that nobody read, or its memory is gone.
    pub(super) fn forget(&mut self, pid: u32) {
        if let Some(of) = self.running.remove(&pid) {
            self.count -= of.len();
        }
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
