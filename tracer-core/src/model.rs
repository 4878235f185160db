//! The state machine: events in, facts out.
//!
//! A [`Model`] takes the observations of capture sources, in any order in which they can be delivered, with losses, and concludes
//! what happened on every queue. It claims no more than the events show: an index whose packet was never read is `unread`, never
//! guessed. Every input is untrusted, because most of it was read from the memory of a traced process. No value makes the model
//! panic, and no value determines how much it allocates.

mod api;
mod clocks;
mod code_objects;
mod copies;
mod ioctl_args;
mod ioctls;
mod kfd_queues;
mod memory;
mod processes;
mod proxies;
mod queue;
mod queue_origin;
mod queues;
mod ring_jobs;
mod signals;
mod thunks;
mod views;

use tracer_common::kfd::QueueType;
use tracer_common::queue::WRITE_DISPATCH_ID;

use crate::event::{Doorbell, Event, Ioctl, Origin, Packets, SdmaDoorbell};
use crate::tables::{self, Fact};
use crate::losses::{self, QUEUE_LIMIT};
use api::{Counted, OpenCalls};
use clocks::Clocks;
use code_objects::CodeObjects;
use ioctls::{Device, QueueChange};
use kfd_queues::KfdQueues;
use memory::Memory;
use processes::Processes;
use proxies::Proxies;
use queue::adoption;
use queue::{End, Sight, doorbell};
use queues::Queues;
use ring_jobs::RingJobs;
use signals::{Signals, Use};
use thunks::Thunks;

pub use views::{Position, QueueView};

/// Time, by the clock of the trace, that a queue or process lingers after its end, so that late events can arrive. Buffers of
/// different sources are read one after the other; even a busy collector makes none of them wait nearly as long.
const LINGER_NS: u64 = 1_000_000_000;
/// Largest number of lingering queues, and of lingering processes.
const MAX_LINGERING: usize = 4096;

/// State machine that takes events and draws conclusions.
#[derive(Debug, Default)]
pub struct Model {
    queues: Queues,
    processes: Processes,
    ring_jobs: RingJobs,
    code_objects: CodeObjects,
    memory: Memory,
    kfd_queues: KfdQueues,
    open_calls: OpenCalls,
    counted: Counted,
    proxies: Proxies,
    thunks: Thunks,
    signals: Signals,
    clocks: Clocks,
    /// Uses of completion signals by the event that is being processed.
    published: Vec<Use>,
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
        // Moved out of the model while the rest of it works, because it names the dispatches that are reported.
        let mut code_objects = std::mem::take(&mut self.code_objects);
        match event {
            Event::CodeObject(event) => {
                code_objects.settle(event.origin.time_ns);
                code_objects.apply(event, out);
            }
            Event::Exec(origin, _) => code_objects.exec(*origin, out),
            Event::Exit(origin) => code_objects.exit(*origin, out),
            _ => {}
        }
        let mut calls = std::mem::take(&mut self.open_calls);
        let thunks = std::mem::take(&mut self.thunks);
        self.take(event, &mut |fact| {
            calls.count(&fact);
            out(thunks.path(code_objects.named(fact)));
        });
        self.thunks = thunks;
        self.thunks.apply(event);
        if let Event::ApiCall(event) = event {
            out(Fact::ApiCall(calls.end(event)));
        }
        self.publish(&code_objects, out);
        self.code_objects = code_objects;
        self.open_calls = calls;
    }

    fn take(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        if let Some(origin) = origin(event) {
            self.queues.settle(origin.time_ns, out);
            self.proxies.settle(origin.time_ns, out);
            self.processes.settle(origin.time_ns, out);
            self.processes.touch(origin);
        }
        match event {
            Event::Packets(event) => self.packets(event, out),
            Event::Doorbell(event) => self.doorbell(event, out),
            Event::SdmaDoorbell(event) => self.sdma_doorbell(event, out),
            Event::Progress(sample) => self.queues.sample(write_pointer(sample.handle), sample, out),
            Event::Signal(look) => {
                let clocks = &mut self.clocks;
                self.signals.look(look, &mut |stamped| clocks.date(stamped, out));
            }
            Event::HsaQueue(event) => {
                self.queues.made(event);
                if let Some(proxy) = event.proxy {
                    self.proxies.made(event, proxy, out);
                }
            }
            Event::Reserve(event) => {
                // A real queue may be created at the address of a former proxy, and the other way round.
                let pointer = write_pointer(event.handle);
                let queue = self.queues.at(event.origin.pid, pointer, event.origin.time_ns);
                if queue.is_some() || !self.proxies.reserve(event, out) {
                    self.queues.reserve(pointer, event, out);
                }
            }
            Event::Ioctl(event) => self.ioctl(event, out),
            // These only show that their process exists.
            Event::CodeObject(_) | Event::ApiCall(_) => {}
            Event::ApiStats(event) => self.counted.apply(event),
            Event::RingJob(event) => self.ring_jobs.apply(event, out),
            Event::DriverCall(call) => out(Fact::DriverCall((*call).clone())),
            Event::DriverEvent(event) => out(Fact::DriverEvent((*event).clone())),
            Event::There(there) => {
                self.processes.there(there.origin, there.comm, out);
                self.kfd_queues.there(there.origin.pid, there.queues);
                if !there.idle {
                    self.queues.makers.attached(there.origin.pid);
                }
            }
            Event::Thunk(origin, hands_over) => self.processes.thunk(*origin, *hands_over),
            Event::Fork(origin, child) => self.processes.fork(*origin, *child, out),
            Event::Exec(origin, comm) => {
                self.processes.exec(*origin, comm);
                self.kfd_queues.forget(origin.pid);
                self.queues.makers.forget(origin.pid);
                self.queues.end_process(origin.pid, End::Destroyed(origin.time_ns));
                self.proxies.end_process(origin.pid, End::Destroyed(origin.time_ns));
                self.memory.end_process(origin.pid);
                self.signals.forget(origin.pid);
                self.clocks.end_process(origin.pid, out);
            }
            Event::Exit(origin) => {
                self.processes.exit(*origin);
                self.kfd_queues.forget(origin.pid);
                self.queues.makers.forget(origin.pid);
                self.queues.end_process(origin.pid, End::ProcessEnded(origin.time_ns));
                self.proxies.end_process(origin.pid, End::ProcessEnded(origin.time_ns));
                self.memory.end_process(origin.pid);
                self.signals.forget(origin.pid);
                self.clocks.end_process(origin.pid, out);
            }
            Event::Lost(lost) => {
                if losses::hide_doorbells(lost.source) {
                    self.queues.doorbells_lost = true;
                    self.signals.lost();
                }
                self.queues.makers.lost(lost.source);
                out(Fact::Loss(tables::Loss {
                    time_ns: lost.time_ns,
                    source: lost.source.to_owned(),
                    count: lost.count,
                }));
            }
        }
    }

    /// Sets whether calls of `hsa_queue_create` are seen in every runtime of traced processes. Otherwise the model attributes no
    /// queue to a runtime.
    pub fn watch_queue_calls(&mut self, watched: bool) {
        self.queues.makers.watched = watched;
    }

    /// Ends the trace: reports the final numbers of everything that still exists. Missing packets become unread, reserved ones
    /// pending.
    ///
    /// Afterwards the model is like a new one, but continues the numbering of queues.
    pub fn finish(&mut self, time_ns: u64, out: &mut impl FnMut(Fact)) {
        let mut code_objects = std::mem::take(&mut self.code_objects);
        let thunks = std::mem::take(&mut self.thunks);
        self.queues
            .finish(time_ns, &mut |fact| out(thunks.path(code_objects.named(fact))));
        self.proxies.finish(time_ns, &mut |fact| out(code_objects.named(fact)));
        self.signals = Signals::default();
        self.clocks.finish(out);
        code_objects.finish(out);
        self.code_objects = code_objects;
        self.ring_jobs.finish(out);
        self.counted.finish(out);
        self.processes.finish(out);
    }

    fn packets(&mut self, event: &Packets<'_>, out: &mut impl FnMut(Fact)) {
        if event.handle == 0 || event.packets.is_empty() {
            return;
        }
        let sight = Sight {
            origin: event.origin,
            write_pointer: write_pointer(event.handle),
            kind: QueueType::ComputeAql,
            first: event.first,
            question: Some(adoption::question_of(event)),
        };
        if event.proxy {
            return self.proxies.packets(event, &sight, out);
        }
        // Packets of a queue beyond the limit are counted at their doorbell.
        if let Some(queue) = self.queues.at_or_adopt(&sight) {
            queue.packets(event, out);
            self.published.append(&mut queue.published);
            // This precedes the packets published now, because they come later.
            if std::mem::take(&mut queue.taken_unread) {
                self.signals.forget(event.origin.pid);
            }
        }
    }

    /// Processes the uses of completion signals by this event. Their kernels are named now, because they may be unloaded when the
    /// packets complete.
    fn publish(&mut self, code_objects: &CodeObjects, out: &mut impl FnMut(Fact)) {
        let clocks = &mut self.clocks;
        for mut used in self.published.drain(..) {
            if let Some(ran) = &mut used.dispatch {
                ran.kernel = code_objects.name(used.pid, ran.kernel_object, used.time_ns).cloned();
            }
            self.signals.publish(used, &mut |stamped| clocks.date(stamped, out));
        }
    }

    fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        if event.proxy {
            return self.proxies.doorbell(event, out);
        }
        let sight = doorbell::sight(event);
        let queue = if event.handle == 0 {
            None
        } else {
            self.queues.at_or_adopt(&sight)
        };
        match queue {
            Some(queue) => {
                queue.doorbell(event, out);
                self.published.append(&mut queue.published);
                if std::mem::take(&mut queue.taken_unread) {
                    self.signals.forget(event.origin.pid);
                }
                self.kfd_queues.identify(queue);
            }
            None => {
                out(Fact::Doorbell(doorbell::fact(event, None, 0, None)));
                self.signals.forget(event.origin.pid);
                if event.handle == 0 {
                    self.queues.blind(event.origin.pid, event.value.saturating_add(1));
                } else {
                    out(queue_limit(event.origin.time_ns));
                }
            }
        }
    }

    fn sdma_doorbell(&mut self, event: &SdmaDoorbell<'_>, out: &mut impl FnMut(Fact)) {
        let (origin, write_pointer) = (event.origin, event.write_pointer);
        let sight = Sight {
            origin,
            write_pointer,
            kind: QueueType::Sdma,
            first: 0,
            question: None,
        };
        let queue = if write_pointer == 0 {
            None
        } else {
            self.queues.at_or_adopt(&sight)
        };
        let (number, engine) = queue.map_or((None, None), |queue| {
            queue.doorbells = queue.doorbells.saturating_add(1);
            queue.submissions = queue.submissions.saturating_add(1);
            self.kfd_queues.identify(queue);
            (Some(queue.number), queue.created.and_then(|create| create.engine))
        });
        out(Fact::Copy(copies::fact(event, number, engine, &self.memory)));
        if number.is_none() && write_pointer != 0 {
            out(queue_limit(origin.time_ns));
        }
    }

    fn ioctl(&mut self, event: &Ioctl<'_>, out: &mut impl FnMut(Fact)) {
        let Some(device) = Device::of(event.cmd) else { return };
        out(Fact::Ioctl(ioctls::fact(device, event)));
        self.memory.ioctl(event);
        if device == Device::Kfd {
            self.clocks.ioctl(event, out);
        }
        let pid = event.origin.pid;
        let known = match ioctls::queue_change(device, event) {
            Some(QueueChange::Created(create)) => self.queues.create(pid, create, out),
            Some(QueueChange::Destroyed { queue_id }) => {
                self.queues.destroy(pid, queue_id, event.origin.time_ns, event.exit_ns);
                true
            }
            None => true,
        };
        if !known {
            out(queue_limit(event.exit_ns));
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
        Event::Thunk(origin, _) | Event::Fork(origin, _) | Event::Exec(origin, _) | Event::Exit(origin) => {
            Some(*origin)
        }
        // Most of these occur in kernel threads, or in processes that are not traced.
        Event::RingJob(_) | Event::DriverCall(_) | Event::DriverEvent(_) | Event::Lost(_) => None,
        // The collector's own events bypass the buffer, which may still contain events of earlier times.
        Event::Progress(_) | Event::Signal(_) | Event::ApiStats(_) => None,
    }
}

fn queue_limit(time_ns: u64) -> Fact {
    Fact::Loss(tables::Loss {
        time_ns,
        source: QUEUE_LIMIT.to_owned(),
        count: 1,
    })
}

#[cfg(test)]
mod tests;
