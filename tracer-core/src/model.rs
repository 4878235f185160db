//! The state machine: events in, facts out.
//!
//! A [`Model`] takes the observations of capture sources, in any order in which they can be delivered, with losses, and concludes
//! what happened on every queue. It claims no more than the events show: an index whose packet was never read is `unread`, never
//! guessed. Every input is untrusted, because most of it was read from the memory of a traced process. No value makes the model
//! panic, and no value determines how much it allocates.

mod annotate;
mod api;
mod clocks;
mod code_objects;
mod copies;
mod ioctl_args;
mod ioctls;
mod kernel_copies;
mod kfd_queues;
mod memory;
mod processes;
mod proxies;
mod queue;
mod queue_origin;
mod queues;
mod ring_jobs;
mod signals;
mod submissions;
mod thunks;
mod views;

use std::collections::VecDeque;

use tracer_common::queue::WRITE_DISPATCH_ID;

use crate::event::{Event, Origin};
use crate::tables::{self, Fact};
use annotate::Annotations;
use api::Counted;
use processes::Processes;
use queue::End;
use ring_jobs::RingJobs;
use submissions::Submissions;

pub use views::Position;

/// Time, by the clock of the trace, that a queue or process lingers after its end, so that late events can arrive. Buffers of
/// different sources are read one after the other; even a busy collector makes none of them wait nearly as long.
const LINGER_NS: u64 = 1_000_000_000;
/// Largest number of lingering queues, and of lingering processes.
const MAX_LINGERING: usize = 4096;

/// State machine that takes events and draws conclusions.
#[derive(Debug, Default)]
pub struct Model {
    trackers: Trackers,
    annotations: Annotations,
}

/// One tracker for each family of events.
#[derive(Debug, Default)]
struct Trackers {
    submissions: Submissions,
    processes: Processes,
    ring_jobs: RingJobs,
    counted: Counted,
}

impl Model {
    /// Returns a model that knows nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Processes one observation. Conclusions go to `out`, in order.
    ///
    /// The final numbers of a queue or a process are reported one second of trace time after its end, because of late events.
    pub fn apply(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        let Self { trackers, annotations } = self;
        annotations.before(event, out);
        trackers.apply(event, &mut |fact| annotations.annotate(fact, out));
        annotations.after(event, out);
        trackers.submissions.publish(&annotations.code_objects, out);
    }

    /// Sets whether calls of `hsa_queue_create` are seen in every runtime of traced processes. Otherwise the model attributes no
    /// queue to a runtime.
    pub fn watch_queue_calls(&mut self, watched: bool) {
        self.trackers.submissions.queues.creators.watched = watched;
    }

    /// Ends the trace: reports the final numbers of everything that still exists. Missing packets become unread, reserved ones
    /// pending.
    ///
    /// Afterwards the model is like a new one, but continues the numbering of queues.
    pub fn finish(&mut self, time_ns: u64, out: &mut impl FnMut(Fact)) {
        let Self { trackers, annotations } = self;
        trackers
            .submissions
            .finish(time_ns, &mut |fact| annotations.annotate(fact, out));
        annotations.finish(out);
        trackers.ring_jobs.finish(out);
        trackers.counted.finish(out);
        trackers.processes.finish(out);
    }
}

impl Trackers {
    /// Passes an event to the tracker of its family.
    fn apply(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        if let Some(origin) = origin(event) {
            self.submissions.settle(origin.time_ns, out);
            self.processes.settle(origin.time_ns, out);
            self.processes.seen(origin);
        }
        match event {
            Event::Packets(event) => self.submissions.packets(event, out),
            Event::Doorbell(event) => self.submissions.doorbell(event, out),
            Event::SdmaDoorbell(event) => self.submissions.sdma_doorbell(event, out),
            Event::Progress(sample) => self.submissions.queues.sample(sample, out),
            Event::Signal(signal) => self.submissions.signal(signal, out),
            Event::HsaQueue(event) => self.submissions.hsa_queue(event, out),
            Event::Taken(event) => self.submissions.queues.taken(event),
            Event::Reserve(event) => self.submissions.reserve(event, out),
            Event::Ioctl(event) => self.submissions.ioctl(event, out),
            // These only show that their process exists.
            Event::CodeObject(_) | Event::ApiCall(_) => {}
            // They are rows already, and no tracker knows their objects.
            Event::Logged(fact) => out((*fact).clone()),
            Event::ApiStats(event) => self.counted.apply(event),
            Event::RingJob(event) => self.ring_jobs.apply(event, out),
            Event::DriverCall(call) => out(Fact::DriverCall((*call).clone())),
            Event::DriverEvent(event) => out(Fact::DriverEvent((*event).clone())),
            Event::Stack(stack) => out(Fact::Stack((*stack).clone())),
            Event::Library(library) => out(Fact::Library((*library).clone())),
            Event::There(there) => {
                self.processes.there(there.origin, there.comm, out);
                self.submissions.there(there);
            }
            Event::Placed(origin, placement) => self.processes.placed(*origin, placement, out),
            Event::Thunk(origin, hands_over) => self.processes.thunk(*origin, *hands_over, out),
            Event::Fork(origin, child) => self.processes.fork(*origin, *child, out),
            Event::Exec(origin, comm) => {
                self.processes.exec(*origin, comm);
                self.submissions
                    .end_process(origin.pid, End::Destroyed(origin.time_ns), out);
            }
            Event::Exit(origin) => {
                self.processes.exit(*origin);
                self.submissions
                    .end_process(origin.pid, End::ProcessEnded(origin.time_ns), out);
            }
            Event::Lost(lost) => {
                self.submissions.lost(lost.source);
                out(loss(lost.time_ns, lost.source, lost.count));
            }
        }
    }
}

/// Returns the address of a queue's write pointer, by which the KFD identifies a queue.
fn write_pointer(handle: u64) -> u64 {
    handle.wrapping_add(WRITE_DISPATCH_ID as u64)
}

/// Returns the thread and time of an event; `None` for an event that no process caused.
fn origin(event: &Event<'_>) -> Option<Origin> {
    match event {
        Event::Doorbell(event) => Some(event.origin),
        Event::Packets(event) => Some(event.origin),
        Event::SdmaDoorbell(event) => Some(event.origin),
        Event::Reserve(event) => Some(event.origin),
        Event::ApiCall(call) => Some(Origin {
            time_ns: call.enter_ns,
            pid: call.pid,
            tid: call.tid,
        }),
        Event::HsaQueue(event) => Some(event.origin),
        Event::Ioctl(event) => Some(event.origin),
        Event::CodeObject(event) => Some(event.origin),
        Event::There(event) => Some(event.origin),
        Event::Thunk(origin, _)
        | Event::Placed(origin, _)
        | Event::Fork(origin, _)
        | Event::Exec(origin, _)
        | Event::Exit(origin) => Some(*origin),
        // Most of these occur in kernel threads, or in processes that are not traced.
        Event::RingJob(_)
        | Event::DriverCall(_)
        | Event::DriverEvent(_)
        | Event::Library(_)
        | Event::Logged(_)
        | Event::Lost(_) => None,
        // The collector's own events bypass the buffer, which may still contain events of earlier times.
        Event::Taken(_) | Event::Progress(_) | Event::Signal(_) | Event::ApiStats(_) | Event::Stack(_) => None,
    }
}

/// Takes the first of the things that ended, if it has lingered long enough: the time of its end, and what identifies it.
fn lingered<T>(ended: &mut VecDeque<(u64, T)>, now: u64) -> Option<(u64, T)> {
    let crowded = ended.len() > MAX_LINGERING;
    ended.pop_front_if(|(end, _)| crowded || end.saturating_add(LINGER_NS) <= now)
}

fn loss(time_ns: u64, source: &str, count: u64) -> Fact {
    Fact::Loss(tables::Loss {
        time_ns,
        source: source.to_owned(),
        count,
    })
}

#[cfg(test)]
mod tests;
