//! Completion signals: attributes the times in a signal to a packet.
//!
//! A GPU writes the times of a packet into the packet's completion signal, before it subtracts 1 from the signal's value. A runtime
//! reuses signals, so the times alone do not show which packet they belong to. But the program of a doorbell reads the signal of
//! each packet that the doorbell publishes, before the GPU can take the packet. If the value is 1 at that time, exactly one
//! completion is to come, and it is that packet's, because runtimes wait in this way. Times that the signal has later, and did not
//! have then, are those of the packet:
//! - at the doorbell of the next packet that uses the signal, or
//! - at any sample that finds the value 0: the packet has ended, and the times were written before.
//!
//! Any other possible use of the signal invalidates this: a packet whose publication was not seen, a packet that was published
//! while another one had not ended yet, lost doorbells.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tracer_common::record::Stamps;

use super::clocks::Stamped;
use crate::event::Signal;
use crate::tables::GpuTime;
use crate::tally::Map;

/// Largest number of signals kept per process. There is a limit because the addresses come from the process's memory, and signals
/// that one process invents must not displace those of the others.
const MAX_OF_PROCESS: usize = 65_536;
/// Largest number of signals kept, over all processes.
const MAX_SIGNALS: usize = 1 << 20;
/// Shortest time that a packet waits for its signal to be reused before the signal is sampled, and longest time between samples.
const SOON_NS: u64 = 20_000_000;
const LATE_NS: u64 = 2_000_000_000;
/// Largest number of signals requested at a time.
const MAX_ASKED: usize = 1024;

/// Publication of a packet that names a completion signal.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) pid: u32,
    /// Handle of the signal.
    pub(super) signal: u64,
    /// Time of the doorbell.
    pub(super) time_ns: u64,
    /// Contents of the signal before the packet could begin, if no other packet was to use the signal then; `None` if unknown.
    pub(super) before: Option<Stamps>,
    /// The dispatch; `None` for a packet that is not a dispatch.
    pub(super) dispatch: Option<Ran>,
}

/// A dispatch that used the signal.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) queue: u32,
    pub(super) index: u64,
    pub(super) kernel_object: u64,
    pub(super) kernel: Option<Arc<str>>,
    pub(super) gpu_id: Option<u32>,
}

/// The completion signals, of all processes, that exactly one packet is to complete.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Packets by process and signal handle.
    running: Map<u32, Map<u64, Running>>,
    /// Number of signals, over all processes.
    count: usize,
    /// Signals to sample: time, process and handle. An entry is valid only if its time is the one in the signal's own state.
    due: BinaryHeap<Reverse<(u64, u32, u64)>>,
}

/// A packet that is the only one to complete its signal.
#[derive(Debug)]
struct Running {
    time_ns: u64,
    before: Stamps,
    dispatch: Option<Ran>,
    /// The time of the signal's valid entry in `due`.
    due_ns: u64,
}

impl Signals {
    /// Processes the publication of a packet.
    pub(super) fn publish(&mut self, used: Use, out: &mut impl FnMut(Stamped)) {
        let former = self.take_if(used.pid, used.signal, |_| true);
        let Some(before) = used.before else { return };
        let due_ns = former.as_ref().map(|former| former.due_ns);
        if let Some(former) = former {
            if !is_of_later(former.before, before) {
                // The former packet has not ended. A change of the times would not show which of the two packets has ended.
                return;
            }
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

    /// Removes and returns the packet that is to complete a signal, if `is_so` returns true for it.
    fn take_if(&mut self, pid: u32, signal: u64, is_so: impl FnOnce(&Running) -> bool) -> Option<Running> {
        let of_process = self.running.get_mut(&pid)?;
        of_process.get(&signal).filter(|running| is_so(running))?;
        let running = of_process.remove(&signal)?;
        self.count -= 1;
        Some(running)
    }

    /// Processes a sample of a signal.
    pub(super) fn sample(&mut self, sample: &Signal, out: &mut impl FnMut(Stamped)) {
        // Before the packet ends, a sample shows nothing. A sample from before the publication shows a former packet.
        let ended = |running: &Running| sample.state.value == 0 && running.time_ns <= sample.origin.time_ns;
        if let Some(running) = self.take_if(sample.origin.pid, sample.state.signal, ended)
            && is_of_later(running.before, sample.state.stamps)
        {
            running.ended(sample.origin.pid, sample.state.stamps, sample.after_ns, out);
        }
    }

    /// Requests samples of the signals that are due. Signals that are reused all the time are not included, because doorbells
    /// report them.
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

    /// Returns the signals that a packet has still to complete, if known.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let each = self.running.iter();
        each.flat_map(|(&pid, of)| of.keys().map(move |&signal| (pid, signal)))
    }

    /// Forgets everything, because packets of any process may have been published unobserved.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }

    /// Forgets a process, because packets of it may have been taken unread, or its memory is gone.
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

/// Returns whether `now` are the times of a packet, and of another packet than `before`: both times were written.
fn is_of_later(before: Stamps, now: Stamps) -> bool {
    let is_time = now.start != 0 && now.start <= now.end;
    is_time && now.start != before.start && now.end != before.end
}

#[cfg(test)]
mod tests;
