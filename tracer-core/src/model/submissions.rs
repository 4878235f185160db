//! Submissions: queues, the proxies in front of them, and what their packets use: completion signals, clocks and memory.

use tracer_common::kfd::QueueType;

use super::clocks::Clocks;
use super::code_objects::CodeObjects;
use super::ioctls::{self, Device, QueueChange};
use super::kfd_queues::KfdQueues;
use super::memory::Memory;
use super::proxies::{self, as_requests};
use super::queue::{End, Sight, adoption, doorbell};
use super::queues::Queues;
use super::signals::{Signals, Use};
use super::{copies, loss, write_pointer};
use crate::event::{Doorbell, HsaQueue, Ioctl, Origin, Packets, Reserve, SdmaDoorbell, Signal, There};
use crate::losses::{self, PROXY_UNREAD, QUEUE_LIMIT};
use crate::tables::Fact;

/// The state of all submissions.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    pub(super) queues: Queues,
    /// The proxies: queues whose facts are [requests](as_requests).
    pub(super) proxies: Queues,
    pub(super) signals: Signals,
    pub(super) kfd_queues: KfdQueues,
    memory: Memory,
    clocks: Clocks,
    /// Uses of completion signals by the event that is being processed.
    published: Vec<Use>,
}

impl Submissions {
    /// Reports queues and proxies that ended long enough ago.
    pub(super) fn settle(&mut self, now: u64, out: &mut impl FnMut(Fact)) {
        self.queues.settle(now, out);
        self.proxies.settle(now, &mut as_requests(out));
    }

    /// Processes the contents of a completion signal.
    pub(super) fn signal(&mut self, signal: &Signal, out: &mut impl FnMut(Fact)) {
        let clocks = &mut self.clocks;
        self.signals.sample(signal, &mut |stamped| clocks.date(stamped, out));
    }

    /// Processes a queue that a program created for itself.
    pub(super) fn hsa_queue(&mut self, event: &HsaQueue, out: &mut impl FnMut(Fact)) {
        self.queues.made(event);
        if let Some(proxy) = event.proxy {
            let create = proxies::creation(event, proxy);
            self.proxies.create(event.origin.pid, create, &mut as_requests(out));
        }
    }

    /// Processes an advance of a write index.
    pub(super) fn reserve(&mut self, event: &Reserve, out: &mut impl FnMut(Fact)) {
        let (pid, pointer) = (event.origin.pid, write_pointer(event.handle));
        // A real queue may be created at the address of a former proxy, and the other way round.
        let is_queue = self.queues.at(pid, pointer, event.origin.time_ns).is_some();
        if is_queue || self.proxies.last(pid, pointer).is_none() {
            self.queues.reserve(event, out);
        } else {
            self.proxies.reserve(event, &mut as_requests(out));
        }
    }

    /// Processes a process that existed before.
    pub(super) fn there(&mut self, there: &There<'_>) {
        self.kfd_queues.there(there, || self.queues.number());
        if !there.idle {
            self.queues.creators.attached(there.origin.pid);
        }
        if !there.idle || !there.queues.is_empty() {
            self.memory.attached(there.origin.pid);
        }
    }

    /// Ends everything of a process that runs a new program, or exits.
    pub(super) fn end_process(&mut self, pid: u32, end: End, out: &mut impl FnMut(Fact)) {
        self.kfd_queues.forget(pid, end.time_ns(), out);
        self.queues.creators.forget(pid);
        self.queues.end_process(pid, end);
        self.proxies.end_process(pid, end);
        self.memory.end_process(pid);
        self.signals.forget(pid);
        self.clocks.end_process(pid, out);
    }

    /// Notes lost events.
    pub(super) fn lost(&mut self, source: &str) {
        if losses::hide_doorbells(source) {
            self.queues.doorbells_lost = true;
            self.signals.lost();
        }
        self.queues.creators.lost(source);
        self.memory.lost(source);
    }

    /// Ends the trace: reports everything that still exists.
    pub(super) fn finish(&mut self, time_ns: u64, out: &mut impl FnMut(Fact)) {
        self.queues.finish(time_ns, out);
        self.kfd_queues.finish(out);
        self.proxies.finish(time_ns, &mut as_requests(out));
        self.signals = Signals::default();
        self.clocks.finish(out);
    }

    /// Processes packets of a ring.
    pub(super) fn packets(&mut self, event: &Packets<'_>, out: &mut impl FnMut(Fact)) {
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
        // Packets of a queue beyond the limit are counted at their doorbell.
        if event.proxy {
            if let Some(proxy) = self.proxies.at_or_adopt(&sight) {
                proxy.packets(event, &mut as_requests(out));
                // No GPU takes packets from a proxy. The times at which they ran come from their publication on a queue.
                proxy.published.clear();
            }
        } else if let Some(queue) = self.queues.at_or_adopt(&sight) {
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
    pub(super) fn publish(&mut self, code_objects: &CodeObjects, out: &mut impl FnMut(Fact)) {
        let clocks = &mut self.clocks;
        for mut used in self.published.drain(..) {
            if let Some(ran) = &mut used.dispatch {
                ran.kernel = code_objects.name(used.pid, ran.kernel_object, used.time_ns).cloned();
            }
            self.signals.publish(used, &mut |stamped| clocks.date(stamped, out));
        }
    }

    /// Processes a doorbell.
    pub(super) fn doorbell(&mut self, event: &Doorbell, out: &mut impl FnMut(Fact)) {
        let Origin { time_ns, pid, .. } = event.origin;
        let (sight, is_known) = (doorbell::sight(event), event.handle != 0);
        let queues = if event.proxy {
            &mut self.proxies
        } else {
            &mut self.queues
        };
        let queue = is_known.then(|| queues.at_or_adopt(&sight)).flatten();
        match queue {
            Some(proxy) if event.proxy => {
                proxy.doorbell(event, &mut as_requests(out));
                proxy.published.clear();
            }
            Some(queue) => {
                queue.doorbell(event, out);
                self.published.append(&mut queue.published);
                if std::mem::take(&mut queue.taken_unread) {
                    self.signals.forget(pid);
                }
                self.kfd_queues.identify(queue);
                // From now on doorbells show its packets.
                let is_first = queue.doorbells == 1;
                self.queues.revision += u64::from(is_first);
            }
            None if event.proxy => {
                let source = if is_known { QUEUE_LIMIT } else { PROXY_UNREAD };
                out(loss(time_ns, source, 1));
            }
            None => {
                out(Fact::Doorbell(doorbell::fact(event, None, 0, None)));
                self.signals.forget(pid);
                if is_known {
                    out(loss(time_ns, QUEUE_LIMIT, 1));
                } else {
                    self.queues.blind(pid, event.value.saturating_add(1));
                }
            }
        }
    }

    /// Processes a doorbell of an SDMA queue.
    pub(super) fn sdma_doorbell(&mut self, event: &SdmaDoorbell<'_>, out: &mut impl FnMut(Fact)) {
        let (origin, write_pointer) = (event.origin, event.write_pointer);
        let sight = Sight {
            origin,
            write_pointer,
            kind: QueueType::Sdma,
            first: 0,
            question: None,
        };
        let is_known = write_pointer != 0;
        let queue = is_known.then(|| self.queues.at_or_adopt(&sight)).flatten();
        let (number, engine) = queue.map_or((None, None), |queue| {
            queue.doorbells = queue.doorbells.saturating_add(1);
            queue.submissions = queue.submissions.saturating_add(1);
            self.kfd_queues.identify(queue);
            (Some(queue.number), queue.created.and_then(|create| create.engine))
        });
        out(Fact::Copy(copies::fact(event, number, engine, &self.memory)));
        if number.is_none() && is_known {
            out(loss(origin.time_ns, QUEUE_LIMIT, 1));
        }
    }

    /// Processes an ioctl: it may create or destroy a queue, allocate memory, or read a clock.
    pub(super) fn ioctl(&mut self, event: &Ioctl<'_>, out: &mut impl FnMut(Fact)) {
        let Some(device) = Device::of(event.cmd) else { return };
        out(Fact::Ioctl(ioctls::fact(device, event)));
        self.memory.ioctl(event);
        if device == Device::Kfd {
            self.clocks.ioctl(event, out);
        }
        let pid = event.origin.pid;
        match ioctls::queue_change(device, event) {
            Some(QueueChange::Created(mut create)) => {
                let ring = (create.ring_base, u64::from(create.ring_bytes));
                create.ring_memory = self.memory.holder(pid, ring);
                self.queues.create(pid, create, out);
            }
            Some(QueueChange::Destroyed { queue_id }) => {
                self.queues.destroy(pid, queue_id, event.origin.time_ns, event.exit_ns);
                self.kfd_queues.destroy(pid, queue_id, event.exit_ns, out);
            }
            None => {}
        }
    }
}
